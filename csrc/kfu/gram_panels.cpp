// The Gram of kernels evaluated from features: packs the rows of a call, shares the panels out
// among threads and leaves the arithmetic to the panel code.
//
// Blocking: a task is a block of panels that fits the second-level cache; it meets all rows of the
// call in order, one register tile at a time. Rows are packed in batches of bounded size.
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "kfu/columns.h"
#include "kfu/gram_kinds.h"
#include "kfu/sparse_copy.h"

namespace kfu {
namespace {

constexpr Index cache_bytes = Index{256} << 10;    // of panels that a task works on
constexpr Index row_batch_bytes = Index{4} << 20;  // of packed rows
constexpr Index small_task = 8;                    // panels that are not shared out further
constexpr Index spread_groups = 4;                 // registers of rows worth spreading out
constexpr double parallel_work = 6e6;              // multiply-adds worth a parallel region
constexpr Index parallel_packing = 20000;          // values to pack that are worth one
constexpr Index fetch_ahead = 4;                   // points, while rows are packed

/// Memory of one call: rows packed once, and a scratch per thread. Kept for the next call.
template <class T>
struct Workspace {
  std::vector<Buffer<T>> packed, norms;  // per channel
  std::vector<std::vector<SparseRow<T>>> sparse;
  std::vector<std::vector<std::int32_t>> starts;
  std::vector<std::vector<T>> spread;              // 0 between calls
  std::vector<Buffer<T>> tiles, expanded, values;  // per thread
  std::vector<std::vector<std::int32_t>> compact;
  std::vector<Buffer<std::int32_t>> indices;
};

/// Where the segments of each row begin: [row][segment + 1]; null when there is only one.
template <class T>
const std::int32_t* segment_starts(const std::vector<SparseRow<T>>& rows, Index depth,
                                   std::vector<std::int32_t>& starts) {
  const Index n_segments = segments_of(depth), segment = segment_of(depth);
  if (n_segments <= 1) return nullptr;
  starts.resize(rows.size() * static_cast<std::size_t>(n_segments + 1));
  std::int32_t* to = starts.data();
  for (const SparseRow<T>& row : rows) {
    Index e = 0;
    for (Index s = 0; s <= n_segments; ++s) {
      while (e < row.count && row.indices[e] < s * segment) ++e;
      *to++ = static_cast<std::int32_t>(e);
    }
  }
  return starts.data();
}

template <class T>
class PanelGram final : public Gram<T> {
 public:
  PanelGram(const DataView& data, const Kernel& kernel, int threads, Simd simd)
      : copy_(is_mostly_zero(data) ? std::make_unique<SparseCopy>(data, threads) : nullptr),
        data_(copy_ ? copy_->view() : data),
        threads_(threads),
        ops_(panel_ops<T>(simd)),
        program_(make_program<T>(kernel, data_, threads)),
        plan_(program_.plan()),
        points_(data_, program_.specs, ops_, threads),
        is_within_unit_(kfu::is_within_unit(kernel)) {}

  Index size() const override { return data_.n; }
  Simd simd() const override { return ops_.simd; }
  const char* layout() const override { return data_.is_csr ? "csr" : "dense"; }

  void diagonal(double* out) const override;
  ValueError value_error() const override;
  ValueError value_error_of(const ColumnSet& columns) const override;

  bool is_within_unit() const override { return is_within_unit_; }
  Index panel_width() const override { return plan_.width; }

  std::unique_ptr<ColumnSet> make_columns(Index capacity) const override {
    return make_panel_columns<T>(program_, points_, nullptr, threads_, capacity);
  }

  std::unique_ptr<ColumnSet> make_columns_of(const DataView& other) const override;

  void rows(const Index* points, Index n_rows, const ColumnSet& columns, Index first, Index last,
            T* const* out) const override {
    Sink<T> sink;
    sink.out = out;
    sink.out_first = first;
    run(points, n_rows, columns, first, last, sink);
  }

  void accumulate(const Index* points, const double* coef, Index n_rows, Index n_outputs,
                  const ColumnSet& columns, Index first, Index last, double* sums, Index ld_sums,
                  const KeepRows<T>& keep) const override {
    Sink<T> sink;
    sink.keep = keep.rows;
    sink.form = keep.form;
    sink.part = keep.part;
    sink.coef = coef;
    sink.n_outputs = n_outputs;
    sink.sums = sums;
    sink.ld_sums = ld_sums;
    run(points, n_rows, columns, first, last, sink);
  }

  std::unique_ptr<ColumnWork> accumulation(const Index* points, const double* coef, Index n_rows,
                                           const ColumnSet& columns, double* sums,
                                           const KeepRows<T>& keep) const override;

  void accumulate_both(const Index* points, const double* coef, Index n_rows,
                       const ColumnSet& columns, Index first, Index last, const double* column_coef,
                       double* sums, double* row_sums, Part part) const override {
    Sink<T> sink;
    sink.part = part;
    sink.coef = coef;
    sink.n_outputs = 1;
    sink.sums = sums;
    sink.column_coef = column_coef;
    sink.row_sums = row_sums;
    run(points, n_rows, columns, first, last, sink);
  }

 private:
  class PreparedRows;
  friend class PreparedRows;

  static constexpr double unit_roundoff = std::numeric_limits<T>::epsilon() / 2;

  ValueError value_error_from(const Points<T>& points, Index max_count) const;
  void run(const Index* points, Index n_rows, const ColumnSet& columns, Index first, Index last,
           const Sink<T>& sink) const;
  void run_batch(const PanelJob<T>& job, int threads, Workspace<T>& space) const;
  Index panels_of_task(Index n_panels, int threads, bool in_blocks) const;
  bool is_spread(const PanelColumns<T>& columns, Index n_rows) const;
  Index batch_rows() const;
  int threads_for(Index n_rows, Index n_columns) const;
  void prepare_rows(const Index* points, Index n_rows, int threads, Workspace<T>& space,
                    std::vector<RowSide<T>>& sides) const;
  void prepare_scratch(const PanelColumns<T>& columns, bool is_expanded, int threads,
                       Workspace<T>& space) const;
  void spread_rows(const Index* points, Index n_rows, int n_spread, bool is_erasing,
                   Workspace<T>& space, std::vector<RowSide<T>>& sides) const;
  PanelScratch<T> scratch_of(Workspace<T>& space, int thread) const;

  std::unique_ptr<Workspace<T>> take_workspace() const;
  void return_workspace(std::unique_ptr<Workspace<T>> space) const;

  std::unique_ptr<SparseCopy> copy_;  // of dense data that are mostly zeros
  DataView data_;
  int threads_;
  const PanelOps<T>& ops_;
  Program<T> program_;
  Plan<T> plan_;
  Points<T> points_;
  bool is_within_unit_;
  mutable std::mutex mutex_;                         // guards spare_ and value_error_
  mutable std::unique_ptr<ValueError> value_error_;  // when it was first asked for
  mutable std::vector<std::unique_ptr<Workspace<T>>> spare_;
};

template <class T>
std::unique_ptr<Workspace<T>> PanelGram<T>::take_workspace() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (spare_.empty()) return std::make_unique<Workspace<T>>();
  auto space = std::move(spare_.back());
  spare_.pop_back();
  return space;
}

template <class T>
void PanelGram<T>::return_workspace(std::unique_ptr<Workspace<T>> space) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  spare_.push_back(std::move(space));
}

template <class T>
void PanelGram<T>::diagonal(double* out) const {
  const Index n_blocks = (data_.n + tile_capacity - 1) / tile_capacity;
  const Index depth = data_.is_csr ? 0 : program_.total_depth();
  const bool is_large = data_.n * (depth + 16) > 1000000;
  const int threads = is_large ? threads_ : 1;
  const Index size = (plan_.n_channels + 3) * tile_capacity + depth;
  Buffer<T> work(threads * size);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (Index b = 0; b < n_blocks; ++b) {
    T* statistics = work.data() + omp_get_thread_num() * size;
    T* tiles = statistics + plan_.n_channels * tile_capacity;
    T* point = tiles + 3 * tile_capacity;
    const Index begin = b * tile_capacity, end = std::min(data_.n, begin + tile_capacity);
    std::fill(statistics, tiles, T(0));
    for (int c = 0; c < plan_.n_channels; ++c) {
      const Statistic statistic = plan_.channels[c].statistic;
      if (statistic != Statistic::dot && statistic != Statistic::min_sum) continue;  // a distance
      for (Index i = begin; i < end; ++i) {
        statistics[c * tile_capacity + (i - begin)] = points_.self_sum(c, i, point);
      }
    }
    const T* values = ops_.apply(plan_, statistics, tiles);
    for (Index i = begin; i < end; ++i) out[i] = static_cast<double>(values[i - begin]);
  }
}

// For exp(−γ s): Points::rounding bounds the error of s; γ and γ log₂e are rounded and multiplied,
// which is 3u s ≤ 6u (‖x‖² + ‖z‖²) more. 5% are for what is of second order while the sums are
// short. exp is good to 2 ulp, and |K'| = γ K.
template <class T>
ValueError PanelGram<T>::value_error_from(const Points<T>& points, Index max_count) const {
  ValueError error;
  if (!is_single_leaf(plan_)) return error;
  const LeafStep<T>& leaf = plan_.leaves[0];
  if (leaf.form != Form::value || std::strcmp(kernel_info(leaf.kind).name, "rbf") != 0)
    return error;
  const Index depth = plan_.channels[0].depth, segment = segment_of(depth);
  const Index longest = data_.is_csr ? std::min(max_count, segment) : segment;
  const Index m = std::min(longest, depth) + (depth - 1) / std::max<Index>(segment, 1);
  if (static_cast<double>(m) * unit_roundoff > 0.01) return error;
  error.is_known = true;
  error.constant = 4.0 * unit_roundoff;
  error.by_point = points.rounding(0);
  const double slope = 1.05 * static_cast<double>(leaf.gamma);
  for (Index i = 0; i < points.size(); ++i) {
    double& bound = error.by_point[static_cast<std::size_t>(i)];
    bound = slope * (bound + 6.3 * unit_roundoff * static_cast<double>(points.norm(0, i)));
  }
  return error;
}

template <class T>
ValueError PanelGram<T>::value_error() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!value_error_) {
    value_error_ = std::make_unique<ValueError>(value_error_from(points_, points_.max_count()));
  }
  return *value_error_;
}

template <class T>
ValueError PanelGram<T>::value_error_of(const ColumnSet& columns) const {
  const auto& set = static_cast<const PanelColumns<T>&>(columns);
  if (!set.holds_all()) throw std::invalid_argument("not the columns of a data set");
  return value_error_from(set.points(), std::max(points_.max_count(), set.max_count()));
}

template <class T>
std::unique_ptr<ColumnSet> PanelGram<T>::make_columns_of(const DataView& other) const {
  if (other.d != data_.d) throw std::invalid_argument("the data sets differ in their features");
  if (other.is_csr && !data_.is_csr) {
    throw std::invalid_argument("the data sets differ in their layout (dense and CSR)");
  }
  auto points = data_.is_csr && !other.is_csr
                    ? std::make_unique<Points<T>>(std::make_unique<SparseCopy>(other, threads_),
                                                  program_.specs, ops_, threads_)
                    : std::make_unique<Points<T>>(other, program_.specs, ops_, threads_);
  const Points<T>& borrowed = *points;
  auto columns = make_panel_columns<T>(program_, borrowed, std::move(points), threads_, other.n);
  std::vector<Index> all(static_cast<std::size_t>(other.n));
  for (Index i = 0; i < other.n; ++i) all[static_cast<std::size_t>(i)] = i;
  columns->assign(0, all.data(), other.n);
  return columns;
}

template <class T>
Index PanelGram<T>::batch_rows() const {
  if (data_.is_csr) return 1 << 16;
  const Index bytes = std::max<Index>(program_.total_depth(), 1) * Index{sizeof(T)};
  const Index groups = row_batch_bytes / bytes / ops_.row_group;
  return std::max<Index>(groups, 8) * ops_.row_group;
}

template <class T>
int PanelGram<T>::threads_for(Index n_rows, Index n_columns) const {
  const double depth = data_.is_csr ? 4.0 * points_.mean_count() * plan_.n_channels
                                    : static_cast<double>(program_.total_depth());
  const double work = static_cast<double>(n_rows) * static_cast<double>(n_columns) * (depth + 16);
  return work < parallel_work ? 1 : threads_;
}

template <class T>
void PanelGram<T>::prepare_rows(const Index* points, Index n_rows, int threads, Workspace<T>& space,
                                std::vector<RowSide<T>>& sides) const {
  const std::size_t n_channels = program_.specs.size();
  space.packed.resize(n_channels);
  space.norms.resize(n_channels);
  space.sparse.resize(n_channels);
  space.starts.resize(n_channels);
  for (std::size_t c = 0; c < n_channels; ++c) {
    const auto channel = static_cast<Index>(c);
    const Index depth = program_.specs[c].depth;
    if (data_.is_csr) {
      space.sparse[c].resize(static_cast<std::size_t>(n_rows));
      for (Index r = 0; r < n_rows; ++r) {
        space.sparse[c][static_cast<std::size_t>(r)] = points_.sparse(channel, points[r]);
      }
      sides[c].sparse = space.sparse[c].data();
      sides[c].starts = segment_starts(space.sparse[c], depth, space.starts[c]);
    } else {
      space.packed[c].resize(n_rows * depth);
      const Index group = ops_.row_group, n_full = n_rows / group * group;
      const auto pack_group = [&](Index first, Index size) {
        T* to = space.packed[c].data() + first * depth;
        for (Index r = first; r < first + size; ++r) {
          if (r + fetch_ahead < n_rows) points_.fetch(points[r + fetch_ahead]);
          points_.pack(channel, points[r], to + (r - first), size);
        }
      };
#pragma omp parallel for num_threads(threads) \
    schedule(static) if (n_full * depth > parallel_packing)
      for (Index first = 0; first < n_full; first += group) pack_group(first, group);
      for (Index first = n_full; first < n_rows;) {
        const Index size = group_size(ops_.row_group, n_rows - first);
        pack_group(first, size);
        first += size;
      }
      sides[c].packed = space.packed[c].data();
    }
    if (program_.specs[c].factor == 0.0) continue;
    space.norms[c].resize(n_rows);
    for (Index r = 0; r < n_rows; ++r) space.norms[c][r] = points_.norm(channel, points[r]);
    sides[c].norms = space.norms[c].data();
  }
}

/// Spreads the rows as [feature][n_spread], or removes them again.
template <class T>
void PanelGram<T>::spread_rows(const Index* points, Index n_rows, int n_spread, bool is_erasing,
                               Workspace<T>& space, std::vector<RowSide<T>>& sides) const {
  space.spread.resize(program_.specs.size());
  for (std::size_t c = 0; c < program_.specs.size(); ++c) {
    std::vector<T>& spread = space.spread[c];
    const auto size = static_cast<std::size_t>(data_.d * n_spread);
    if (spread.size() < size) spread.resize(size, T(0));
    for (Index r = 0; r < n_rows; ++r) {
      const SparseRow<T> row = points_.sparse(static_cast<Index>(c), points[r]);
      for (Index e = 0; e < row.count; ++e) {
        spread[static_cast<std::size_t>(row.indices[e] * Index{n_spread} + r)] =
            is_erasing ? T(0) : row.values[e];
      }
    }
    sides[c].spread = spread.data();
  }
}

template <class T>
void PanelGram<T>::prepare_scratch(const PanelColumns<T>& columns, bool is_expanded, int threads,
                                   Workspace<T>& space) const {
  const auto n_threads = static_cast<std::size_t>(threads);
  if (space.tiles.size() < n_threads) {
    space.tiles.resize(n_threads);
    space.expanded.resize(n_threads);
    space.values.resize(n_threads);
    space.compact.resize(n_threads);
    space.indices.resize(n_threads);
  }
  for (std::size_t t = 0; t < n_threads; ++t) {
    space.tiles[t].resize((plan_.n_channels + 3) * tile_capacity);
    if (is_expanded || !data_.is_csr) continue;
    const bool is_compact = data_.d > max_expanded_features;
    const Index lines =
        is_compact ? std::min(data_.d, columns.max_count() * plan_.width) + 1 : data_.d;
    space.expanded[t].resize(plan_.n_channels * lines * plan_.width);
    if (!is_compact) continue;
    space.compact[t].resize(static_cast<std::size_t>(plan_.n_channels * data_.d), 0);
    space.indices[t].resize(points_.max_count() + 1);
    space.values[t].resize(points_.max_count() + 1);
  }
}

template <class T>
PanelScratch<T> PanelGram<T>::scratch_of(Workspace<T>& space, int thread) const {
  const auto t = static_cast<std::size_t>(thread);
  PanelScratch<T> scratch;
  scratch.tiles = space.tiles[t].data();
  scratch.expanded = space.expanded[t].data();
  scratch.expanded_stride = space.expanded[t].size() / std::max(plan_.n_channels, 1);
  scratch.compact = space.compact[t].empty() ? nullptr : space.compact[t].data();
  scratch.indices = space.indices[t].data();
  scratch.values = space.values[t].data();
  return scratch;
}

// Panels that fit the second-level cache; fewer, where threads are to end together, unless tasks
// become too small. Tasks meet where blocks of kept rows do.
template <class T>
Index PanelGram<T>::panels_of_task(Index n_panels, int threads, bool in_blocks) const {
  const Index panel_bytes =
      std::max<Index>(program_.total_depth(), 1) * plan_.width * Index{sizeof(T)};
  Index panels = std::min<Index>(std::max<Index>(cache_bytes / panel_bytes, 4), 64);
  if (threads > 1) {
    const Index small = std::min(small_task, n_panels / (4 * threads));
    panels = std::min(panels, std::max<Index>({n_panels / (16 * threads), small, 1}));
  }
  const Index whole = in_blocks ? std::max<Index>(kFixedColumns / plan_.width, 1) : 1;
  return (panels + whole - 1) / whole * whole;
}

template <class T>
void PanelGram<T>::run_batch(const PanelJob<T>& job, int threads, Workspace<T>& space) const {
  const Index width = plan_.width;
  const Index first_panel = job.first / width;
  const Index last_panel = (job.last + width - 1) / width;
  const Index n_panels = last_panel - first_panel;
  if (threads == 1 && data_.is_csr) {
    ops_.block(job, first_panel, last_panel, scratch_of(space, 0));
    return;
  }
  const Index panels = panels_of_task(n_panels, threads, job.sink.form != RowForm::floating);
  const Index whole =
      job.sink.form != RowForm::floating ? std::max<Index>(kFixedColumns / width, 1) : 1;
  const Index origin = first_panel / whole * whole;
  const Index n_blocks = (last_panel - origin + panels - 1) / panels;
  const auto run_block = [&](Index b, int thread) {
    const Index begin = origin + b * panels;
    ops_.block(job, std::max(begin, first_panel), std::min(begin + panels, last_panel),
               scratch_of(space, thread));
  };
  if (threads == 1) {
    for (Index b = 0; b < n_blocks; ++b) run_block(b, 0);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (Index b = 0; b < n_blocks; ++b) run_block(b, omp_get_thread_num());
}

template <class T>
bool PanelGram<T>::is_spread(const PanelColumns<T>& columns, Index n_rows) const {
  const bool is_expanded = columns.sides()[0].panels != nullptr;
  return data_.is_csr && !is_expanded && n_rows <= spread_groups * ops_.lanes;
}

template <class T>
void PanelGram<T>::run(const Index* points, Index n_rows, const ColumnSet& columns, Index first,
                       Index last, const Sink<T>& sink) const {
  if (n_rows <= 0 || last <= first) return;
  const auto& set = static_cast<const PanelColumns<T>&>(columns);
  const std::vector<ColumnSide<T>> column_sides = set.sides();
  std::vector<RowSide<T>> row_sides(program_.specs.size());
  std::unique_ptr<Workspace<T>> space = take_workspace();
  const bool is_expanded = column_sides[0].panels != nullptr;
  const bool is_spread = this->is_spread(set, n_rows);
  const Index step = is_spread ? ops_.lanes : batch_rows();
  for (Index begin = 0; begin < n_rows; begin += step) {
    const Index count = std::min(step, n_rows - begin);
    const int threads = sink.row_sums ? 1 : threads_for(count, last - first);
    prepare_rows(points + begin, count, threads, *space, row_sides);
    prepare_scratch(set, is_expanded || is_spread, threads, *space);
    const int n_spread = !is_spread ? 0 : count == 1 ? 1 : ops_.lanes;
    if (is_spread) spread_rows(points + begin, count, n_spread, false, *space, row_sides);
    PanelJob<T> job;
    job.plan = &plan_;
    job.rows = row_sides.data();
    job.columns = column_sides.data();
    job.n_rows = count;
    job.n_spread = n_spread;
    job.first = first;
    job.last = last;
    job.sink = sink;
    if (sink.out) job.sink.out = sink.out + begin;
    if (sink.keep) job.sink.keep = sink.keep + begin;
    if (sink.coef) job.sink.coef = sink.coef + begin * sink.n_outputs;
    if (sink.row_sums) job.sink.row_sums = sink.row_sums + begin;
    run_batch(job, threads, *space);
    if (is_spread) spread_rows(points + begin, count, n_spread, true, *space, row_sides);
  }
  return_workspace(std::move(space));
}

/// Rows that are packed, to meet any columns.
template <class T>
class PanelGram<T>::PreparedRows final : public ColumnWork {
 public:
  PreparedRows(const PanelGram& gram, const Index* points, Index n_rows,
               const PanelColumns<T>& columns, const Sink<T>& sink)
      : gram_(gram),
        space_(gram.take_workspace()),
        column_sides_(columns.sides()),
        row_sides_(column_sides_.size()) {
    const bool is_expanded = column_sides_[0].panels != nullptr;
    gram.prepare_rows(points, n_rows, gram.threads_for(n_rows, columns.size()), *space_,
                      row_sides_);
    gram.prepare_scratch(columns, is_expanded, gram.threads_, *space_);
    job_.plan = &gram.plan_;
    job_.rows = row_sides_.data();
    job_.columns = column_sides_.data();
    job_.n_rows = n_rows;
    job_.sink = sink;
  }
  ~PreparedRows() override { gram_.return_workspace(std::move(space_)); }

  Index width(Index n_columns) const override {
    const Index n_panels = (n_columns + gram_.plan_.width - 1) / gram_.plan_.width;
    return gram_.plan_.width *
           gram_.panels_of_task(n_panels, gram_.threads_, job_.sink.form != RowForm::floating);
  }

  void run(Index first, Index last, int thread) override {
    PanelJob<T> job = job_;
    job.first = first;
    job.last = last;
    const Index width = gram_.plan_.width;
    gram_.ops_.block(job, first / width, (last + width - 1) / width,
                     gram_.scratch_of(*space_, thread));
  }

 private:
  const PanelGram& gram_;
  std::unique_ptr<Workspace<T>> space_;
  std::vector<ColumnSide<T>> column_sides_;
  std::vector<RowSide<T>> row_sides_;
  PanelJob<T> job_;
};

template <class T>
std::unique_ptr<ColumnWork> PanelGram<T>::accumulation(const Index* points, const double* coef,
                                                       Index n_rows, const ColumnSet& columns,
                                                       double* sums,
                                                       const KeepRows<T>& keep) const {
  const auto& set = static_cast<const PanelColumns<T>&>(columns);
  if (n_rows == 0 || n_rows > batch_rows() || is_spread(set, n_rows)) return nullptr;
  Sink<T> sink;
  sink.keep = keep.rows;
  sink.form = keep.form;
  sink.part = keep.part;
  sink.coef = coef;
  sink.n_outputs = 1;
  sink.sums = sums;
  return std::make_unique<PreparedRows>(*this, points, n_rows, set, sink);
}

}  // namespace

template <class T>
std::unique_ptr<Gram<T>> make_panel_gram(const DataView& data, const Kernel& kernel, int threads,
                                         Simd simd) {
  return std::make_unique<PanelGram<T>>(data, kernel, threads, simd);
}

template std::unique_ptr<Gram<float>> make_panel_gram<float>(const DataView&, const Kernel&, int,
                                                             Simd);
template std::unique_ptr<Gram<double>> make_panel_gram<double>(const DataView&, const Kernel&, int,
                                                               Simd);

}  // namespace kfu

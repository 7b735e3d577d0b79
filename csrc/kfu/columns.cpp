#include "kfu/columns.h"

#include <algorithm>

#include "kfu/pages.h"

namespace kfu {

namespace {

constexpr Index kPrefaultBytes = Index{1} << 20;  // fresh memory worth asking for at once
constexpr Index kParallelCost = 20000;  // values to pack that are worth starting threads for
constexpr Index kFetchAhead = 4;        // points

}  // namespace

template <class T>
Index PanelColumns<T>::cost_of(Index count) const {
  return count * (points_.mean_count() > 0 ? static_cast<Index>(points_.mean_count())
                                           : program_.total_depth());
}

template <class T>
void PanelColumns<T>::assign(Index first, const Index* points, Index count) {
  if (first + count > size_) {
    grow(first + count);
    size_ = first + count;
  }
#pragma omp parallel for num_threads(threads_) schedule(static) if (cost_of(count) > kParallelCost)
  for (Index k = 0; k < count; ++k) put(first + k, points[k]);
}

template <class T>
void PanelColumns<T>::assign_slots(const Index* slots, const Index* points, Index count) {
#pragma omp parallel for num_threads(threads_) schedule(static) if (cost_of(count) > kParallelCost)
  for (Index k = 0; k < count; ++k) {
    if (k + kFetchAhead < count) points_.fetch(points[k + kFetchAhead]);
    put(slots[k], points[k]);
  }
}

template <class T>
void PanelColumns<T>::truncate(Index size) {
  size_ = std::min(size, size_);
}

namespace {

Index panels_for(Index slots, Index width) { return (slots + width - 1) / width; }

/// Grows `buffer` to `n_panels` panels of `panel_size`; new panels are 0.
template <class T>
void grow_panels(Buffer<T>& buffer, Index n_panels, Index panel_size, int threads) {
  const Index before = buffer.size();
  const Index after = n_panels * panel_size;
  if (after <= before) return;
  buffer.resize(after);
  const Index bytes = (after - before) * static_cast<Index>(sizeof(T));
  const bool is_large = bytes > kPrefaultBytes;
  if (is_large) prefault(buffer.data() + before, bytes, threads);
#pragma omp parallel for num_threads(threads) schedule(static) if (is_large)
  for (Index k = before; k < after; k += panel_size) {
    T* panel = buffer.data() + k;
    std::fill(panel, panel + std::min(panel_size, after - k), T(0));
  }
}

template <class T>
class DenseColumns final : public PanelColumns<T> {
 public:
  DenseColumns(const Program<T>& program, const Points<T>& points, std::unique_ptr<Points<T>> owned,
               int threads, Index capacity)
      : PanelColumns<T>(program, points, std::move(owned), threads),
        panels_(program.specs.size()),
        norms_(program.specs.size()) {
    reserve(capacity);
  }

  std::vector<ColumnSide<T>> sides() const override {
    std::vector<ColumnSide<T>> sides(panels_.size());
    for (std::size_t c = 0; c < sides.size(); ++c) {
      sides[c].panels = panels_[c].data();
      sides[c].norms = norms_[c].data();
    }
    return sides;
  }

 protected:
  void grow(Index size) override {
    if (size > capacity_) reserve(std::max(size, capacity_ + capacity_ / 2));
  }

  void put(Index slot, Index point) override {
    const Index panel = slot / dense_width, lane = slot % dense_width;
    for (std::size_t c = 0; c < panels_.size(); ++c) {
      const ChannelSpec& spec = this->program_.specs[c];
      T* to = panels_[c].data() + panel * spec.depth * dense_width + lane;
      this->points_.pack(static_cast<Index>(c), point, to, dense_width);
      if (spec.factor != 0.0) norms_[c][slot] = this->points_.norm(static_cast<Index>(c), point);
    }
  }

 private:
  void reserve(Index capacity) {
    const Index n_panels = panels_for(std::max<Index>(capacity, 1), dense_width);
    for (std::size_t c = 0; c < panels_.size(); ++c) {
      grow_panels(panels_[c], n_panels, this->program_.specs[c].depth * dense_width,
                  this->threads_);
      grow_panels(norms_[c], n_panels, dense_width, this->threads_);
    }
    capacity_ = n_panels * dense_width;
  }

  std::vector<Buffer<T>> panels_;
  std::vector<Buffer<T>> norms_;
  Index capacity_ = 0;
};

template <class T>
class SparseColumns final : public PanelColumns<T> {
 public:
  SparseColumns(const Program<T>& program, const Points<T>& points,
                std::unique_ptr<Points<T>> owned, int threads, Index capacity)
      : PanelColumns<T>(program, points, std::move(owned), threads),
        rows_(program.specs.size()),
        panels_(program.specs.size()),
        norms_(program.specs.size()) {
    reserve(capacity);
  }

  std::vector<ColumnSide<T>> sides() const override {
    std::vector<ColumnSide<T>> sides(rows_.size());
    for (std::size_t c = 0; c < sides.size(); ++c) {
      sides[c].panels = is_expanded_ ? panels_[c].data() : nullptr;
      sides[c].sparse = rows_[c].data();
      sides[c].norms = norms_[c].data();
    }
    return sides;
  }

 protected:
  void grow(Index size) override {
    if (size > capacity_) reserve(std::max(size, capacity_ + capacity_ / 2));
  }

  void put(Index slot, Index point) override {
    for (std::size_t c = 0; c < rows_.size(); ++c) {
      const auto channel = static_cast<Index>(c);
      SparseRow<T>& row = rows_[c][static_cast<std::size_t>(slot)];
      if (is_expanded_) scatter(c, slot, row, true);
      row = this->points_.sparse(channel, point);
      if (is_expanded_) scatter(c, slot, row, false);
      if (this->program_.specs[c].factor != 0.0) {
        norms_[c][slot] = this->points_.norm(channel, point);
      }
    }
  }

 private:
  static constexpr Index width = sparse_width<T>;

  void reserve(Index capacity) {
    const Index n_panels = panels_for(std::max<Index>(capacity, 1), width);
    const Index depth = this->points_.n_features();
    const Index bytes = n_panels * width * this->program_.total_depth() * Index{sizeof(T)};
    is_expanded_ = is_expanded_ && depth <= max_expanded_features && bytes <= max_expanded_bytes;
    for (std::size_t c = 0; c < rows_.size(); ++c) {
      rows_[c].resize(static_cast<std::size_t>(n_panels * width));
      grow_panels(norms_[c], n_panels, width, this->threads_);
      if (is_expanded_) {
        grow_panels(panels_[c], n_panels, depth * width, this->threads_);
      } else {
        panels_[c] = Buffer<T>();
      }
    }
    capacity_ = n_panels * width;
  }

  void scatter(std::size_t channel, Index slot, const SparseRow<T>& row, bool is_erasing) {
    T* panel = panels_[channel].data() + (slot / width) * this->points_.n_features() * width +
               slot % width;
    for (Index e = 0; e < row.count; ++e) {
      panel[row.indices[e] * width] = is_erasing ? T(0) : row.values[e];
    }
  }

  std::vector<std::vector<SparseRow<T>>> rows_;
  std::vector<Buffer<T>> panels_;
  std::vector<Buffer<T>> norms_;
  Index capacity_ = 0;
  bool is_expanded_ = true;
};

}  // namespace

template <class T>
std::unique_ptr<PanelColumns<T>> make_panel_columns(const Program<T>& program,
                                                    const Points<T>& points,
                                                    std::unique_ptr<Points<T>> owned, int threads,
                                                    Index capacity) {
  if (program.is_sparse) {
    return std::make_unique<SparseColumns<T>>(program, points, std::move(owned), threads, capacity);
  }
  return std::make_unique<DenseColumns<T>>(program, points, std::move(owned), threads, capacity);
}

template class PanelColumns<float>;
template class PanelColumns<double>;
template std::unique_ptr<PanelColumns<float>> make_panel_columns<float>(
    const Program<float>&, const Points<float>&, std::unique_ptr<Points<float>>, int, Index);
template std::unique_ptr<PanelColumns<double>> make_panel_columns<double>(
    const Program<double>&, const Points<double>&, std::unique_ptr<Points<double>>, int, Index);

}  // namespace kfu

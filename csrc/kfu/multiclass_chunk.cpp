#include "kfu/multiclass_chunk.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kfu/buffer.h"
#include "kfu/multiclass_face.h"
#include "kfu/smo_loops.h"

namespace kfu {

namespace {

constexpr double kSweepFraction = 0.5;   // of the largest violation: rows of a sweep
constexpr Index kLeastChunk = 32;        // whatever the memory
constexpr Index kStepsBetweenFaces = 4;  // row steps for each row of the chunk
constexpr Index kFewIterations = 10;     // of a face step
constexpr Index kManyIterations = 200;

template <class T>
class GramChunk final : public MulticlassChunk {
 public:
  GramChunk(const Gram<T>& gram, Index n_classes, double bytes)
      : gram_(gram),
        loops_(smo_loops<T, double>(gram.simd())),
        n_classes_(n_classes),
        largest_chunk_(std::max(kLeastChunk, static_cast<Index>(std::sqrt(bytes / sizeof(T))))),
        B_row_(static_cast<std::size_t>(n_classes)),
        G_row_(static_cast<std::size_t>(n_classes)) {}

  Index solve(const std::vector<Index>& rows, const ChunkTask& task, double* B) override;
  void add_moves(const std::vector<Index>& rows, const std::vector<double>& moves, int threads,
                 double* G) override;
  Index largest_chunk() const override { return largest_chunk_; }
  Index face_steps() const override { return face_steps_; }
  Index evaluations() const override { return evaluations_; }
  void diagonal(double* out) const override { gram_.diagonal(out); }
  Simd simd() const override { return gram_.simd(); }
  const char* layout() const override { return gram_.layout(); }

 private:
  void load(const std::vector<Index>& rows, const ChunkTask& task);
  MulticlassRow row_at(const std::vector<Index>& rows, const ChunkTask& task, const double* B,
                       Index r);
  Index sweep(const std::vector<Index>& rows, const ChunkTask& task, Index max_steps,
              RowProblem& problem, double* B);
  void step(const MulticlassRow& row, RowProblem& problem, double curvature, Index r, double* B);

  const Gram<T>& gram_;
  const SmoLoops<T, double>& loops_;
  Index n_classes_;
  Index largest_chunk_;
  std::unique_ptr<ColumnSet> all_, columns_;
  Buffer<T> block_;
  Buffer<double> G_;  // n_classes × ld_
  Index ld_ = 0;
  std::vector<double> B_row_, G_row_, violations_;
  Index evaluations_ = 0;
  Index face_steps_ = 0;
};

template <class T>
void GramChunk<T>::load(const std::vector<Index>& rows, const ChunkTask& task) {
  const Index q = static_cast<Index>(rows.size()), n = task.problem->size();
  ld_ = padded(q);
  if (!columns_) columns_ = gram_.make_columns(q);
  columns_->truncate(0);
  columns_->assign(0, rows.data(), q);
  block_.resize(q * ld_);
  std::vector<T*> out(static_cast<std::size_t>(q));
  for (Index r = 0; r < q; ++r) out[r] = block_.data() + r * ld_;
  gram_.rows(rows.data(), q, *columns_, 0, q, out.data());
  evaluations_ += q * q;
  if (task.offset != 0.0)
    for (Index r = 0; r < q; ++r)
      for (Index c = 0; c < q; ++c) out[r][c] = static_cast<T>(out[r][c] + task.offset);
  G_.resize(n_classes_ * ld_);
  for (Index k = 0; k < n_classes_; ++k)
    for (Index r = 0; r < q; ++r) G_[k * ld_ + r] = task.G[k * n + rows[r]];
}

template <class T>
MulticlassRow GramChunk<T>::row_at(const std::vector<Index>& rows, const ChunkTask& task,
                                   const double* B, Index r) {
  const Index i = rows[r];
  for (Index k = 0; k < n_classes_; ++k) G_row_[k] = G_[k * ld_ + r];
  return {task.problem->labels[i], task.problem->costs[i], B + i * n_classes_, G_row_.data()};
}

// Moves row r of the chunk, at `B`, to its optimum.
template <class T>
void GramChunk<T>::step(const MulticlassRow& row, RowProblem& problem, double curvature, Index r,
                        double* B) {
  problem.solve(row, curvature, B_row_.data());
  const T* values = block_.data() + r * ld_;
  const Index q = static_cast<Index>(violations_.size());
  for (Index k = 0; k < n_classes_; ++k) {
    const double move = B_row_[k] - B[k];
    if (move == 0.0) continue;
    B[k] = B_row_[k];
    loops_.add_rows(G_.data() + k * ld_, &values, &move, 1, q);
  }
}

template <class T>
Index GramChunk<T>::solve(const std::vector<Index>& rows, const ChunkTask& task, double* B) {
  load(rows, task);
  const Index q = static_cast<Index>(rows.size());
  violations_.resize(rows.size());
  RowProblem problem(task.problem->kind, n_classes_);
  FaceStep<T> face(task.problem->kind, n_classes_, loops_);
  const ChunkView<T> view{&rows,
                          task.problem->labels.data(),
                          task.problem->costs.data(),
                          task.curvature,
                          B,
                          block_.data(),
                          G_.data(),
                          ld_,
                          task.threads};
  Index steps = 0, since_face = 0, interval = kStepsBetweenFaces * q, budget = 2 * kFewIterations;
  while (steps < task.max_steps) {
    const Index swept = sweep(rows, task, task.max_steps - steps, problem, B);
    if (swept == 0) break;
    steps += swept;
    since_face += swept;
    if (since_face < interval) continue;
    since_face = 0;
    const double part = face.take(view, budget);
    face_steps_ += part > 0.0;
    // The whole way: the faces are the right ones, or nearly. None of it: they still change.
    if (part == 1.0) budget = std::min(2 * budget, kManyIterations);
    if (part < 1.0) budget = std::max(budget / 2, kFewIterations);
    interval = part == 0.0 ? 2 * interval : std::max(interval / 2, kStepsBetweenFaces * q);
  }
  return steps;
}

// Solves the rows whose violation is near the largest, one after the other. Returns their number.
template <class T>
Index GramChunk<T>::sweep(const std::vector<Index>& rows, const ChunkTask& task, Index max_steps,
                          RowProblem& problem, double* B) {
  const Index q = static_cast<Index>(rows.size());
  for (Index r = 0; r < q; ++r) violations_[r] = problem.violation(row_at(rows, task, B, r));
  const double largest = *std::max_element(violations_.begin(), violations_.end());
  if (largest <= task.goal) return 0;
  const double least = std::max(task.goal, kSweepFraction * largest);
  Index steps = 0;
  for (Index r = 0; r < q && steps < max_steps; ++r) {
    if (violations_[r] < least) continue;
    const MulticlassRow row = row_at(rows, task, B, r);
    if (problem.violation(row) < least) continue;
    step(row, problem, task.curvature[rows[r]], r, B + rows[r] * n_classes_);
    ++steps;
  }
  return steps;
}

template <class T>
void GramChunk<T>::add_moves(const std::vector<Index>& rows, const std::vector<double>& moves, int,
                             double* G) {
  const Index n = gram_.size();
  if (rows.empty()) return;
  if (!all_) {
    std::vector<Index> points(static_cast<std::size_t>(n));
    std::iota(points.begin(), points.end(), Index{0});
    all_ = gram_.make_columns(n);
    all_->assign(0, points.data(), n);
  }
  const Index count = static_cast<Index>(rows.size());
  gram_.accumulate(rows.data(), moves.data(), count, n_classes_, *all_, 0, n, G, n, {});
  evaluations_ += count * n;
}

}  // namespace

template <class T>
std::unique_ptr<MulticlassChunk> make_multiclass_chunk(const Gram<T>& gram, Index n_classes,
                                                       double bytes) {
  return std::unique_ptr<MulticlassChunk>(new GramChunk<T>(gram, n_classes, bytes));
}

template std::unique_ptr<MulticlassChunk> make_multiclass_chunk<float>(const Gram<float>&, Index,
                                                                       double);
template std::unique_ptr<MulticlassChunk> make_multiclass_chunk<double>(const Gram<double>&, Index,
                                                                        double);

}  // namespace kfu

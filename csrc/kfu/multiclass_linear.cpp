#include "kfu/multiclass_linear.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kfu/linear_map.h"

namespace kfu {

namespace {

constexpr double kSweepFraction = 0.1;  // of the largest violation of the last sweep: rows to move

// An order that has nothing to do with that of the data, and is another one each time: neighbours
// in a file are often alike, and solving like rows in a row undoes one by the other.
void shuffle(std::vector<Index>& rows, std::uint64_t seed) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u;
  for (std::size_t k = rows.size(); k > 1; --k) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(rows[k - 1], rows[(state >> 33) % k]);
  }
}

class LinearChunk final : public MulticlassChunk {
 public:
  LinearChunk(const DataView& data, const Gram<double>& gram, Index n_classes)
      : data_(data), gram_(gram), n_classes_(n_classes) {}

  Index solve(const std::vector<Index>& rows, const ChunkTask& task, double* B) override;
  void add_moves(const std::vector<Index>& rows, const std::vector<double>& moves, int threads,
                 double* G) override;
  Index largest_chunk() const override { return gram_.size(); }
  Index face_steps() const override { return 0; }
  Index evaluations() const override { return 0; }
  void diagonal(double* out) const override { gram_.diagonal(out); }
  Simd simd() const override { return gram_.simd(); }
  const char* layout() const override { return gram_.layout(); }

 private:
  template <class V, class Visit>
  void for_each_entry(Index i, const Visit& visit) const;
  template <class V>
  Index solve_rows(const std::vector<Index>& rows, const ChunkTask& task, double* B);

  DataView data_;
  const Gram<double>& gram_;
  Index n_classes_;
};

// visit(feature, value) for the entries of a point.
template <class V, class Visit>
void LinearChunk::for_each_entry(Index i, const Visit& visit) const {
  const V* values = static_cast<const V*>(data_.values);
  if (data_.is_csr) {
    for (Index e = data_.indptr[i]; e < data_.indptr[i + 1]; ++e)
      visit(data_.indices[e], static_cast<double>(values[e]));
  } else {
    const V* row = values + i * data_.ld;
    for (Index j = 0; j < data_.d; ++j) visit(j, static_cast<double>(row[j]));
  }
}

Index LinearChunk::solve(const std::vector<Index>& rows, const ChunkTask& task, double* B) {
  return data_.is_double ? solve_rows<double>(rows, task, B) : solve_rows<float>(rows, task, B);
}

template <class V>
Index LinearChunk::solve_rows(const std::vector<Index>& rows, const ChunkTask& task, double* B) {
  const Index n = task.problem->size(), K = n_classes_;
  // What has changed since the round began: the weights, and Σ_i B_ik for the offset.
  std::vector<double> W(static_cast<std::size_t>(data_.d * K)), sums(static_cast<std::size_t>(K));
  std::vector<double> G(sums.size()), moved(sums.size());
  RowProblem problem(task.problem->kind, K);
  std::vector<Index> active = rows;
  Index steps = 0;
  double last = 0.0;  // largest violation of the sweep before
  for (std::uint64_t sweep = 1; steps < task.max_steps && !active.empty(); ++sweep) {
    double largest = 0.0;
    const double least = std::max(task.goal, kSweepFraction * last);
    shuffle(active, sweep);
    std::size_t n_kept = 0;
    for (std::size_t r = 0; r < active.size(); ++r) {
      const Index i = active[r];
      for (Index k = 0; k < K; ++k) G[k] = task.G[k * n + i] + task.offset * sums[k];
      for_each_entry<V>(i, [&](Index j, double x) {
        const double* w = W.data() + j * K;
        for (Index k = 0; k < K; ++k) G[k] += x * w[k];
      });
      double* row_B = B + i * K;
      const MulticlassRow row{task.problem->labels[i], task.problem->costs[i], row_B, G.data()};
      const double violation = problem.violation(row);
      largest = std::max(largest, violation);
      if (violation > 0.0 || problem.is_free(row)) active[n_kept++] = i;
      if (violation <= least || steps >= task.max_steps) continue;
      problem.solve(row, task.curvature[i], moved.data());
      for (Index k = 0; k < K; ++k) {
        const double value = moved[k];
        moved[k] = value - row_B[k];
        row_B[k] = value;
        sums[k] += moved[k];
      }
      for_each_entry<V>(i, [&](Index j, double x) {
        double* w = W.data() + j * K;
        for (Index k = 0; k < K; ++k) w[k] += x * moved[k];
      });
      ++steps;
    }
    if (largest <= task.goal) break;
    active.resize(n_kept);
    last = largest;
  }
  return steps;
}

// The change of the K weight vectors, applied to all points.
void LinearChunk::add_moves(const std::vector<Index>& rows, const std::vector<double>& moves,
                            int threads, double* G) {
  const Index n = gram_.size(), count = static_cast<Index>(rows.size());
  std::vector<Index> points(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) points[i] = i;
  std::vector<double> coef(rows.size()), values(points.size());
  for (Index k = 0; k < n_classes_; ++k) {
    for (Index r = 0; r < count; ++r) coef[r] = moves[r * n_classes_ + k];
    LinearMap change(data_, threads);
    change.add(rows.data(), coef.data(), count);
    change.apply(points.data(), n, values.data());
    for (Index i = 0; i < n; ++i) G[k * n + i] += values[i];
  }
}

}  // namespace

std::unique_ptr<MulticlassChunk> make_linear_chunk(const DataView& data, const Gram<double>& gram,
                                                   Index n_classes) {
  return std::unique_ptr<MulticlassChunk>(new LinearChunk(data, gram, n_classes));
}

}  // namespace kfu

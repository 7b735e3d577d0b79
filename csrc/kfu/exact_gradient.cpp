#include "kfu/exact_gradient.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "kfu/linear_map.h"

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Index kColumnsAtOnce = 4096;  // bounds the packed copy of the points
constexpr Index kColumnBlock = 1024;    // of the symmetric part: its values stay in the cache
constexpr Index kRowBlock = 128;

// The variables with β ≠ 0: where they are, their points, and β.
struct Support {
  std::vector<Index> variables, points;
  std::vector<double> coef;

  Support(const DualProblem& problem, const std::vector<double>& beta) {
    for (Index k = 0; k < problem.size(); ++k)
      if (beta[k] != 0.0) {
        variables.push_back(k);
        points.push_back(problem.points[k]);
        coef.push_back(beta[k]);
      }
  }
  Index size() const { return static_cast<Index>(points.size()); }
};

double separable_part(const DualProblem& problem, const std::vector<double>& beta, Index k) {
  return problem.linear[k] + (problem.ridge.empty() ? 0.0 : problem.ridge[k] * beta[k]);
}

// sums[c] gains Σ_s coef_s K(s, columns[c]) for given points as columns.
void add_columns(const Support& support, const Gram<double>& gram, const std::vector<Index>& points,
                 std::vector<double>& sums) {
  const Index n = static_cast<Index>(points.size());
  if (n == 0 || support.size() == 0) return;
  const std::unique_ptr<ColumnSet> columns = gram.make_columns(std::min(n, kColumnsAtOnce));
  for (Index first = 0; first < n; first += kColumnsAtOnce) {
    const Index count = std::min(kColumnsAtOnce, n - first);
    columns->truncate(0);
    columns->assign(0, points.data() + first, count);
    gram.accumulate(support.points.data(), support.coef.data(), support.size(), 1, *columns, 0,
                    count, sums.data() + first, count, nullptr);
  }
}

// sums[i] = Σ_j coef_j K(i, j) over the support, each value of K computed once (but for the blocks
// on the diagonal). Rows come in blocks I, columns in blocks J; a block with I before J gives Σ
// over its rows to the sums of J, and Σ over its columns to the sums of I. Returns the values
// computed.
Index symmetric_sums(const Support& support, const Gram<double>& gram, int threads,
                     std::vector<double>& sums) {
  const Index n = support.size();
  Index values = 0;
  std::vector<double> block(static_cast<std::size_t>(kRowBlock * kColumnBlock));
  std::vector<double*> rows(static_cast<std::size_t>(kRowBlock));
  for (Index r = 0; r < kRowBlock; ++r) rows[r] = block.data() + r * kColumnBlock;
  const std::unique_ptr<ColumnSet> columns = gram.make_columns(std::min(n, kColumnBlock));
  for (Index begin = 0; begin < n; begin += kColumnBlock) {
    const Index end = std::min(n, begin + kColumnBlock);
    columns->truncate(0);
    columns->assign(0, support.points.data() + begin, end - begin);
    for (Index row = 0; row < end; row += kRowBlock) {
      const Index row_end = std::min(n, row + kRowBlock);
      const Index first = std::max(begin, row) - begin, last = end - begin;
      gram.accumulate(support.points.data() + row, support.coef.data() + row, row_end - row, 1,
                      *columns, first, last, sums.data() + begin, n, rows.data());
      values += (row_end - row) * (last - first);
      const Index beyond = std::max(begin, row_end) - begin;  // columns after the rows' own block
#pragma omp parallel for schedule(static) num_threads(threads) if (last - beyond > 256)
      for (Index r = row; r < row_end; ++r) {
        const double* value = rows[r - row];
        const double* coef = support.coef.data() + begin;
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (Index c = beyond; c < last; ++c) sum += coef[c] * value[c];
        sums[r] += sum;
      }
    }
  }
  return values;
}

// The variables without β whose F may matter to a certificate, given F at the support. Requires an
// unbounded variable, or no equality: otherwise the bias hangs on all of them.
std::vector<Index> relevant_variables(const DualProblem& problem, const std::vector<double>& beta,
                                      const ApproximateGradient& approximate,
                                      const std::vector<double>& F) {
  double up = kInf, low = -kInf, sum = 0.0;
  Index n_free = 0;
  for (Index k = 0; k < problem.size(); ++k) {
    if (beta[k] == 0.0) continue;
    const bool may_increase = beta[k]<problem.upper[k], may_decrease = beta[k]> problem.lower[k];
    if (may_increase) up = std::min(up, F[k]);
    if (may_decrease) low = std::max(low, F[k]);
    if (may_increase && may_decrease) sum += F[k], ++n_free;
  }
  const double theta =
      problem.has_equality ? sum / static_cast<double>(std::max<Index>(n_free, 1)) : 0.0;
  const bool decides_all = problem.has_equality && n_free == 0;
  // Beyond these a variable can neither be an end of the gap nor on the wrong side of θ.
  const double ceiling = problem.has_equality ? std::max(low, theta) : 0.0;
  const double floor = problem.has_equality ? std::min(up, theta) : 0.0;
  std::vector<Index> found;
  for (Index k = 0; k < problem.size(); ++k) {
    if (beta[k] != 0.0) continue;
    const bool may_increase = 0.0 < problem.upper[k], may_decrease = 0.0 > problem.lower[k];
    if (!may_increase && !may_decrease) continue;
    const double F_k = approximate.values[k], error = approximate.errors[k];
    const bool settled = !decides_all && !(may_increase && may_decrease) &&
                         (may_increase ? F_k - error > ceiling : F_k + error < floor);
    if (!settled) found.push_back(k);
  }
  return found;
}

}  // namespace

Index exact_gradient(const DualProblem& problem, const std::vector<double>& beta,
                     const Gram<double>& gram, int threads, const ApproximateGradient* approximate,
                     std::vector<double>& F_out) {
  const Index n = problem.size();
  const Support support(problem, beta);
  F_out.assign(static_cast<std::size_t>(n), 0.0);
  if (approximate != nullptr) F_out = approximate->values;

  std::vector<double> sums(static_cast<std::size_t>(support.size()), 0.0);
  Index values = symmetric_sums(support, gram, threads, sums);
  for (Index s = 0; s < support.size(); ++s) {
    const Index k = support.variables[s];
    F_out[k] = sums[s] + separable_part(problem, beta, k);
  }

  std::vector<Index> others;
  if (approximate != nullptr) {
    others = relevant_variables(problem, beta, *approximate, F_out);
  } else {
    for (Index k = 0; k < n; ++k)
      if (beta[k] == 0.0) others.push_back(k);
  }
  std::vector<Index> points;
  for (const Index k : others) points.push_back(problem.points[k]);
  sums.assign(others.size(), 0.0);
  add_columns(support, gram, points, sums);
  for (std::size_t c = 0; c < others.size(); ++c)
    F_out[others[c]] = sums[c] + separable_part(problem, beta, others[c]);
  return values + support.size() * static_cast<Index>(others.size());
}

void exact_linear_gradient(const DualProblem& problem, const std::vector<double>& beta,
                           const DataView& data, int threads, std::vector<double>& F_out) {
  const Support support(problem, beta);
  F_out.assign(problem.linear.size(), 0.0);
  LinearMap map(data, threads);
  map.add(support.points.data(), support.coef.data(), support.size());
  map.apply(problem.points.data(), problem.size(), F_out.data());
  for (Index k = 0; k < problem.size(); ++k) F_out[k] += separable_part(problem, beta, k);
}

}  // namespace kfu

#include "kfu/smo.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace kfu {

namespace {

constexpr Index kReduceAfter = 100;    // consecutive unbounded steps before reducing
constexpr double kReduceBelow = 0.75;  // only when that leaves less than this part of the set
// Extrapolation: a snapshot whenever this part of the unbounded variables has moved, looked at
// after so many steps; at most this part of the variables may stop at their bounds.
constexpr double kSweep = 0.1;
constexpr Index kLookAfter = 64;
constexpr double kMostStopped = 0.05;
constexpr double kMostDrift = 0.05;  // error of F, as part of the gap
constexpr Index kDriftSamples = 8;   // variables that are asked
constexpr double kInf = std::numeric_limits<double>::infinity();

// Curvature below which rounding of K decides its sign, relative to the values of K it is made
// from: the step then goes to the box.
template <class T>
T curvature_floor(T diagonal) {
  const T relative = sizeof(T) == 4 ? static_cast<T>(1e-7) : static_cast<T>(1e-12);
  return std::max(relative * diagonal, std::numeric_limits<T>::min());
}

// Where a step from `old` to `value` ends: at `end`, if only rounding of the sum keeps it from
// there. Such a rest would count as unbounded and fix a bias that is free.
double landed(double old, double value, double end) {
  constexpr double rounding = 16.0 * std::numeric_limits<double>::epsilon();
  return std::fabs(end - value) <= rounding * (std::fabs(old) + std::fabs(value)) ? end : value;
}

// A block gathered from the rows of a larger one.
template <class T>
class GatheredRows final : public BlockRows<T> {
 public:
  GatheredRows(BlockRows<T>& source, std::vector<Index> members)
      : source_(source),
        members_(std::move(members)),
        ld_(padded(static_cast<Index>(members_.size()))),
        rows_(members_.size()) {}

  bool has(Index k) const override { return rows_[k] != nullptr; }
  const T* get(Index k) const override { return rows_[k].get(); }
  Index batch() const override { return 1; }
  void fill(const Index* ks, Index count) override {
    for (Index c = 0; c < count; ++c) {
      const Index member = members_[ks[c]];
      if (!source_.has(member)) source_.fill(&member, 1);
      const T* full = source_.get(member);
      rows_[ks[c]].reset(new T[ld_]());
      T* row = rows_[ks[c]].get();
      for (std::size_t l = 0; l < members_.size(); ++l) row[l] = full[members_[l]];
    }
  }

 private:
  BlockRows<T>& source_;
  std::vector<Index> members_;
  Index ld_;
  std::vector<std::unique_ptr<T[]>> rows_;
};

}  // namespace

template <class T, class G>
void LocalProblem<T, G>::resize(Index size, int groups) {
  m = size;
  n_groups = groups;
  const std::size_t length = static_cast<std::size_t>(padded(size));
  F.assign(length, G(0));
  beta.assign(length, 0.0);
  lower.assign(length, 0.0);
  upper.assign(length, 0.0);
  kink.assign(length, 0.0);
  group.assign(length, 0);
  for (int g = 0; g < n_groups; ++g) {
    up_mask[g].assign(length, static_cast<G>(kInf));
    low_mask[g].assign(length, static_cast<G>(-kInf));
  }
  diagonal.assign(length, T(1));
}

template <class T, class G>
void LocalProblem<T, G>::update_mask(Index k) {
  const int g = group_of(k);
  up_mask[g][k] = static_cast<G>(beta[k] < upper[k] ? up_slope(0.0, beta[k], kink[k]) : kInf);
  low_mask[g][k] = static_cast<G>(beta[k] > lower[k] ? low_slope(0.0, beta[k], kink[k]) : -kInf);
}

template <class T, class G>
Smo<T, G>::Smo(Simd simd, PairRule pair, bool has_equality)
    : loops_(smo_loops<T, G>(simd)), pair_(pair), has_equality_(has_equality) {}

template <class T, class G>
SmoResult Smo<T, G>::solve(LocalProblem<T, G>& p, BlockRows<T>& rows, double tolerance,
                           Index max_iterations, bool wants_F) {
  if (!has_equality_) zero_row_.assign(static_cast<std::size_t>(padded(p.m)), T(0));
  const Start start{p.beta, p.F};
  const SmoResult result = iterate(p, rows, tolerance, max_iterations, true);
  if (wants_F && result.extrapolations > 0) recompute(p, rows, start);
  return result;
}

template <class T, class G>
GroupEnds Smo<T, G>::scan(const LocalProblem<T, G>& p) const {
  GroupEnds ends;
  for (int g = 0; g < p.n_groups; ++g)
    ends.of[g] = loops_.scan(p.F.data(), p.up_mask[g].data(), p.low_mask[g].data(), padded(p.m));
  return ends;
}

template <class T, class G>
GroupEnds Smo<T, G>::step_and_scan(LocalProblem<T, G>& p, const T* row_i, const T* row_j,
                                   double t) const {
  GroupEnds ends;
  ends.of[0] = loops_.step_and_scan(p.F.data(), row_i, row_j, t, p.up_mask[0].data(),
                                    p.low_mask[0].data(), padded(p.m));
  for (int g = 1; g < p.n_groups; ++g)
    ends.of[g] = loops_.scan(p.F.data(), p.up_mask[g].data(), p.low_mask[g].data(), padded(p.m));
  return ends;
}

template <class T, class G>
SmoResult Smo<T, G>::iterate(LocalProblem<T, G>& p, BlockRows<T>& rows, double tolerance,
                             Index max_iterations, bool may_reduce) {
  SmoResult result;
  GroupEnds ends = scan(p);
  Index unbounded_steps = 0;
  Extrapolation<G> extrapolation(kSweep);
  const Start start{p.beta, p.F};
  Index steps_since_look = 0;
  while (ends.gap(p.n_groups, has_equality_) > tolerance && result.iterations < max_iterations) {
    const Step step = has_equality_ ? pair_step(p, rows, ends) : single_step(p, rows, ends);
    if (!step.moved) break;
    ++result.iterations;
    unbounded_steps = step.stayed_free ? unbounded_steps + 1 : 0;
    if (++steps_since_look == kLookAfter) {
      if (extrapolate(p, rows, ends, start, extrapolation)) {
        ends = scan(p);
        ++result.extrapolations;
      }
      steps_since_look = 0;
    }
    if (may_reduce && unbounded_steps >= kReduceAfter) {
      const SmoResult inner = reduced(p, rows, tolerance, max_iterations - result.iterations);
      result.iterations += inner.iterations;
      result.reductions += inner.reductions;
      result.extrapolations += inner.extrapolations;
      if (inner.iterations > 0) ends = scan(p);
      unbounded_steps = 0;
    }
  }
  result.gap = ends.gap(p.n_groups, has_equality_);
  return result;
}

template <class T, class G>
bool Smo<T, G>::extrapolate(LocalProblem<T, G>& p, BlockRows<T>& rows, const GroupEnds& ends,
                            const Start& start, Extrapolation<G>& extrapolation) {
  Index unbounded = 0;
  for (Index k = 0; k < p.m; ++k) unbounded += p.is_free(k);
  if (!extrapolation.is_due(2 * kLookAfter, unbounded)) return false;
  const DescentView<G> view{p.m,           p.beta.data(),  p.lower.data(), p.upper.data(),
                            p.kink.data(), p.group.data(), p.F.data(),     p.n_groups,
                            has_equality_};
  if (drift(p, rows, start) > kMostDrift * ends.gap(p.n_groups, has_equality_)) {
    recompute(p, rows, start);
    extrapolation.forget();
    extrapolation.remember(view);
    return true;
  }
  bool has_moved = false;
  if (extrapolation.propose(view, static_cast<Index>(kMostStopped * static_cast<double>(p.m)))) {
    const std::vector<double> old_beta = p.beta;
    const std::vector<G> old_F = p.F;
    std::vector<const T*> stopped;
    for (const Index k : extrapolation.stopped()) stopped.push_back(row(p, rows, k, ends));
    extrapolation.advance(p.F.data());
    std::copy(extrapolation.target().begin(), extrapolation.target().end(), p.beta.begin());
    loops_.add_rows(p.F.data(), stopped.data(), extrapolation.stopped_delta().data(),
                    static_cast<Index>(stopped.size()), p.m);
    has_moved = objective_change(view, old_beta, old_F) < 0.0;
    if (!has_moved) {
      p.beta = old_beta;
      p.F = old_F;
    }
    for (Index k = 0; k < p.m && has_moved; ++k) p.update_mask(k);
  }
  extrapolation.remember(view);
  return has_moved;
}

template <class T, class G>
double Smo<T, G>::drift(const LocalProblem<T, G>& p, const BlockRows<T>& rows,
                        const Start& start) const {
  double worst = 0.0;
  const Index stride = std::max<Index>(p.m / kDriftSamples, 1);
  for (Index k = stride / 2; k < p.m; k += stride) {
    if (!rows.has(k)) continue;
    const T* row = rows.get(k);
    double F = static_cast<double>(start.F[k]);
    for (Index l = 0; l < p.m; ++l) F += static_cast<double>(row[l]) * (p.beta[l] - start.beta[l]);
    worst = std::max(worst, std::fabs(F - static_cast<double>(p.F[k])));
  }
  return worst;
}

// Every variable that has moved has a row.
template <class T, class G>
void Smo<T, G>::recompute(LocalProblem<T, G>& p, const BlockRows<T>& rows,
                          const Start& start) const {
  std::vector<const T*> moved;
  std::vector<double> delta;
  for (Index k = 0; k < p.m; ++k) {
    if (p.beta[k] == start.beta[k]) continue;
    moved.push_back(rows.get(k));
    delta.push_back(p.beta[k] - start.beta[k]);
  }
  p.F = start.F;
  loops_.add_rows(p.F.data(), moved.data(), delta.data(), static_cast<Index>(moved.size()), p.m);
}

// The row of k. When it has to be computed, the most violating variables still without a row are
// computed with it: the panel kernels work on several rows for little more than the cost of one.
template <class T, class G>
const T* Smo<T, G>::row(LocalProblem<T, G>& p, BlockRows<T>& rows, Index k, const GroupEnds& ends) {
  if (rows.has(k)) return rows.get(k);
  const Index extra = rows.batch() - 1;
  candidates_.assign(1, k);
  if (extra > 0) {
    double middle[kMostGroups];
    for (int g = 0; g < p.n_groups; ++g) middle[g] = ends.threshold(g, has_equality_);
    ranked_.clear();
    for (Index l = 0; l < p.m; ++l) {
      if (l == k || rows.has(l)) continue;
      const double theta = middle[p.group_of(l)];  // a direction that is closed violates by −inf
      const double violation = std::max(theta - p.up_F(l), p.low_F(l) - theta);
      if (violation > 0.0) ranked_.emplace_back(-violation, l);
    }
    const Index count = std::min<Index>(extra, static_cast<Index>(ranked_.size()));
    std::nth_element(ranked_.begin(), ranked_.begin() + count, ranked_.end());
    for (Index c = 0; c < count; ++c) candidates_.push_back(ranked_[c].second);
  }
  rows.fill(candidates_.data(), static_cast<Index>(candidates_.size()));
  return rows.get(k);
}

template <class T, class G>
typename Smo<T, G>::Step Smo<T, G>::pair_step(LocalProblem<T, G>& p, BlockRows<T>& rows,
                                              GroupEnds& ends) {
  int g = 0;
  for (int other = 1; other < p.n_groups; ++other)
    if (pair_gap(ends.of[other]) > pair_gap(ends.of[g])) g = other;
  const Index i = ends.of[g].up;
  const T* row_i = row(p, rows, i, ends);
  Index j = ends.of[g].low;
  if (pair_ == PairRule::second_order) {
    const Index second = loops_.select_second(
        p.F.data(), row_i, p.diagonal.data(), p.F[i] + p.up_mask[g][i], p.diagonal[i],
        p.low_mask[g].data(), curvature_floor(p.diagonal[i]), padded(p.m));
    if (second >= 0) j = second;
  }
  const T* row_j = row(p, rows, j, ends);
  const double eta = static_cast<double>(p.diagonal[i]) + static_cast<double>(p.diagonal[j]) -
                     2.0 * static_cast<double>(row_i[j]);
  const double end_i = piece_end_up(p.beta[i], p.upper[i], p.kink[i]);
  const double end_j = piece_end_down(p.beta[j], p.lower[j], p.kink[j]);
  const double room_i = end_i - p.beta[i], room_j = p.beta[j] - end_j;
  const T floor = curvature_floor(std::max(p.diagonal[i], p.diagonal[j]));
  const G slope = (p.F[j] + p.low_mask[g][j]) - (p.F[i] + p.up_mask[g][i]);
  double t = static_cast<double>(slope) / std::max(eta, static_cast<double>(floor));
  t = std::min({t, room_i, room_j});
  Step step;
  step.stayed_free = p.is_free(i) && p.is_free(j);
  const double old_i = p.beta[i], old_j = p.beta[j];
  p.beta[i] = t == room_i ? end_i : landed(old_i, old_i + t, end_i);
  p.beta[j] = t == room_j ? end_j : landed(old_j, old_j - t, end_j);
  step.moved = p.beta[i] != old_i || p.beta[j] != old_j;
  p.update_mask(i);
  p.update_mask(j);
  ends = step_and_scan(p, row_i, row_j, t);
  return step;
}

template <class T, class G>
typename Smo<T, G>::Step Smo<T, G>::single_step(LocalProblem<T, G>& p, BlockRows<T>& rows,
                                                GroupEnds& ends) {
  const bool increase = -ends.of[0].up_value >= ends.of[0].low_value;
  const Index k = increase ? ends.of[0].up : ends.of[0].low;
  const T* row_k = row(p, rows, k, ends);
  const double curvature =
      std::max(static_cast<double>(p.diagonal[k]), std::numeric_limits<double>::min());
  Step step;
  step.stayed_free = p.is_free(k);
  const double old = p.beta[k];
  const double slope = increase ? p.up_F(k) : p.low_F(k);
  const double target = old - slope / curvature;
  const double end = increase ? piece_end_up(old, p.upper[k], p.kink[k])
                              : piece_end_down(old, p.lower[k], p.kink[k]);
  p.beta[k] = landed(old, increase ? std::min(target, end) : std::max(target, end), end);
  step.moved = p.beta[k] != old;
  p.update_mask(k);
  ends = step_and_scan(p, row_k, zero_row_.data(), p.beta[k] - old);
  return step;
}

template <class T, class G>
SmoResult Smo<T, G>::reduced(LocalProblem<T, G>& p, BlockRows<T>& rows, double tolerance,
                             Index max_iterations) {
  std::vector<Index> members;
  for (Index k = 0; k < p.m; ++k)
    if (p.is_free(k)) members.push_back(k);
  const Index size = static_cast<Index>(members.size());
  if (size < 2 || size > kReduceBelow * p.m) return {};

  LocalProblem<T, G> sub;
  sub.resize(size, p.n_groups);
  for (Index l = 0; l < size; ++l) {
    const Index k = members[l];
    sub.F[l] = p.F[k];
    sub.beta[l] = p.beta[k];
    sub.lower[l] = p.lower[k];
    sub.upper[l] = p.upper[k];
    sub.kink[l] = p.kink[k];
    sub.group[l] = p.group[k];
    sub.diagonal[l] = p.diagonal[k];
    sub.update_mask(l);
  }
  GatheredRows<T> sub_rows(rows, members);
  SmoResult result = iterate(sub, sub_rows, tolerance, max_iterations, false);
  result.reductions = 1;

  std::vector<const T*> moved;
  std::vector<double> delta;
  for (Index l = 0; l < size; ++l) {
    const Index k = members[l];
    if (sub.beta[l] == p.beta[k]) continue;
    moved.push_back(rows.get(k));
    delta.push_back(sub.beta[l] - p.beta[k]);
    p.beta[k] = sub.beta[l];
    p.update_mask(k);
  }
  loops_.add_rows(p.F.data(), moved.data(), delta.data(), static_cast<Index>(moved.size()), p.m);
  for (Index l = 0; l < size; ++l) p.F[members[l]] = sub.F[l];
  return result;
}

template struct LocalProblem<float, float>;
template struct LocalProblem<float, double>;
template struct LocalProblem<double, double>;
template class Smo<float, float>;
template class Smo<float, double>;
template class Smo<double, double>;

}  // namespace kfu

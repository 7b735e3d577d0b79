// The direction of a stretch: what moves now, and β̇, θ̇ and F˙ with it.
//
// The factor of the free block is updated as variables come and go. Each direction is checked by
// its residual r = θ̇ ∓ kink˙ − F˙ over the free variables, F˙ being summed from rows of K, not from
// the factor. A solve by a factor that is as good as a fresh one leaves a residual of a few ε times
// the terms of its sums, T = max K·Σ|β̇| + |K_AB β̇_B| + |θ̇| + |linear˙|, however ill-conditioned the
// block is (9e-16 T at most was seen on paths of 9,000 steps). So
//
//   |r| > kDeteriorated·T   is the fault of the factor: it is computed afresh from rows of K;
//   |r| > kRefine·|θ̇|       of a good factor comes from cancellation in an ill-conditioned block,
//                           and a second solve with the residual removes it.
#include <algorithm>
#include <cmath>

#include "kfu/parametric_run.h"
#include "kfu/vector_scans.h"

namespace kfu {

namespace {

constexpr double kRefine = 1e-12;        // relative residual of a direction that is improved
constexpr double kDeteriorated = 1e-13;  // 450 ε: far above rounding, far below what shows
constexpr Index kParallel = 1 << 19;     // products from which a second thread pays
constexpr Index kSlice = 512;            // columns one thread takes at a time, at least

}  // namespace

void ParametricRun::clear_rates() {
  linear_rate_.clear();
  lower_rate_.clear();
  upper_rate_.clear();
  kink_rate_.clear();
  pull_.clear();
  for (int g = 0; g < kMostGroups; ++g) total_rate_[g] = pull_total_[g] = 0.0;
  t_direction_ = 0;
}

void ParametricRun::use_path_rates(int direction) {
  clear_rates();
  const auto turned = [direction](const std::vector<double>& rates) {
    std::vector<double> out(rates);
    if (direction < 0)
      for (double& r : out) r = -r;
    return out;
  };
  linear_rate_ = turned(problem_.linear.rate);
  lower_rate_ = turned(problem_.lower.rate);
  upper_rate_ = turned(problem_.upper.rate);
  kink_rate_ = turned(problem_.kink.rate);
  for (int g = 0; g < kMostGroups; ++g) total_rate_[g] = direction * problem_.total_rate[g];
  t_direction_ = direction;
  rates_changed();
}

double ParametricRun::right_of(Index i) const {
  double r = -rate(linear_rate_, i) - (pull_.empty() ? 0.0 : pull_[i]);
  if (!kink_rate_.empty()) r -= place_[i] == Place::free ? kink_rate_[i] : -kink_rate_[i];
  return r;
}

// The share of bounded variables that move with their bound, and the right-hand sides.
void ParametricRun::rates_changed() {
  pull_.clear();
  pull_total_[0] = pull_total_[1] = 0.0;
  std::vector<Index> items;
  std::vector<double> coef;
  if (!lower_rate_.empty() || !upper_rate_.empty()) {
    for (Index i = 0; i < n_; ++i) {
      double r = 0.0;
      if (place_[i] == Place::lower) r = rate(lower_rate_, i);
      if (place_[i] == Place::upper) r = rate(upper_rate_, i);
      if (r == 0.0) continue;
      items.push_back(i);
      coef.push_back(r);
      if (problem_.has_equality) pull_total_[problem_.group_of(i)] += r;
    }
  }
  if (!items.empty()) {
    pull_.assign(static_cast<std::size_t>(length_), 0.0);
    add_rows(items.data(), coef.data(), static_cast<Index>(items.size()), pull_.data());
    if (!problem_.ridge.empty())
      for (std::size_t k = 0; k < items.size(); ++k)
        pull_[items[k]] += problem_.ridge[items[k]] * coef[k];
  }
  std::vector<double> right(free_.size());
  for (std::size_t k = 0; k < free_.size(); ++k) right[k] = right_of(free_[k]);
  factor_.set_right(right.data());
}

// --- direction -----------------------------------------------------------------------------------

// Where the equality of a group without free variables moves, one has to move with it.
PathStatus ParametricRun::enter_into_empty_group() {
  if (!problem_.has_equality) return PathStatus::running;
  for (int g = 0; g < problem_.n_groups(); ++g) {
    const double need = total_rate_[g] - pull_total_[g];
    if (n_free_of_[g] > 0 || need == 0.0) continue;
    Index best = -1;
    double best_value = 0.0;
    for (Index i = 0; i < n_; ++i) {
      if (fixed_[i] || group(i) != g) continue;
      if (place_[i] == (need > 0.0 ? Place::upper : Place::lower)) continue;
      const double value = need > 0.0 ? F_[i] + offset(i, true) : -(F_[i] + offset(i, false));
      if (best < 0 || value < best_value) {
        best = i;
        best_value = value;
      }
    }
    if (best < 0) return PathStatus::infeasible;
    theta_[g] = need > 0.0 ? best_value : -best_value;
    const PathStatus status = enter(best, need > 0.0 ? 1 : -1);
    if (status != PathStatus::running) return status;
  }
  return PathStatus::running;
}

// μ with (EᵀM⁻¹E) μ = right, of the groups that have free variables.
void ParametricRun::multipliers(const double* right, double* mu) const {
  const int groups = problem_.has_equality ? problem_.n_groups() : 0;
  if (groups == 2 && n_free_of_[0] > 0 && n_free_of_[1] > 0) {
    const double a = factor_.aa(0, 0), b = factor_.aa(0, 1), d = factor_.aa(1, 1);
    const double det = a * d - b * b;
    mu[0] = (d * right[0] - b * right[1]) / det;
    mu[1] = (a * right[1] - b * right[0]) / det;
    return;
  }
  for (int g = 0; g < groups; ++g) mu[g] = n_free_of_[g] > 0 ? right[g] / factor_.aa(g, g) : 0.0;
}

// β̇ of the free variables and θ̇, by the factor.
void ParametricRun::solve_direction() {
  const Index m = static_cast<Index>(free_.size());
  const int groups = problem_.has_equality ? problem_.n_groups() : 0;
  double need[kMostGroups] = {0.0, 0.0}, mu[kMostGroups] = {0.0, 0.0};
  double right[kMostGroups] = {0.0, 0.0};
  for (int g = 0; g < groups; ++g) {
    if (n_free_of_[g] > 0) need[g] = total_rate_[g] - pull_total_[g];
    right[g] = need[g] - factor_.az(g);
  }
  multipliers(right, mu);
  beta_rate_.resize(static_cast<std::size_t>(m));
  factor_.solve(mu, beta_rate_.data());
  for (int g = 0; g < groups; ++g) {
    theta_rate_[g] = n_free_of_[g] > 0 ? mu[g] - border_ * need[g] : 0.0;
    if (n_free_of_[g] != 1 || need[g] != 0.0) continue;
    for (Index k = 0; k < m; ++k)  // one alone under a total that stays does not move at all
      if (problem_.group_of(free_[k]) == g) beta_rate_[k] = 0.0;
  }
}

// F˙ += Kv for v of the free variables.
void ParametricRun::add_free_rows(const std::vector<double>& v) {
  const Index m = static_cast<Index>(free_.size());
  if (!problem_.ridge.empty())
    for (Index k = 0; k < m; ++k) F_rate_[free_[k]] += problem_.ridge[free_[k]] * v[k];
  if (settings_.threads < 2 || m * length_ <= kParallel) {
    loops_.add_rows(F_rate_.data(), free_rows_.data(), v.data(), m, length_);
    return;
  }
  const Index slice = std::max(kSlice, (length_ + settings_.threads - 1) / settings_.threads);
  const Index slices = (length_ + slice - 1) / slice;
#pragma omp parallel for num_threads(settings_.threads) schedule(static)
  for (Index s = 0; s < slices; ++s) {
    const Index first = s * slice, last = std::min(first + slice, length_);
    std::vector<const double*> rows(free_rows_);
    for (const double*& row : rows) row += first;
    loops_.add_rows(F_rate_.data() + first, rows.data(), v.data(), m, last - first);
  }
}

void ParametricRun::find_gradient_rate() {
  F_rate_.resize(static_cast<std::size_t>(length_));
  for (Index i = 0; i < n_; ++i) F_rate_[i] = rate(linear_rate_, i);
  std::fill(F_rate_.begin() + n_, F_rate_.end(), 0.0);
  if (!pull_.empty())
    for (Index i = 0; i < length_; ++i) F_rate_[i] += pull_[i];
  add_free_rows(beta_rate_);
}

// The residual of the direction into scratch_.
ParametricRun::Residual ParametricRun::residual_of_direction() {
  Residual found;
  const Index m = static_cast<Index>(free_.size());
  scratch_.resize(static_cast<std::size_t>(m));
  for (Index k = 0; k < m; ++k) {
    const Index i = free_[k];
    double wanted = problem_.has_equality ? theta_rate_[problem_.group_of(i)] : 0.0;
    if (!kink_rate_.empty()) wanted -= place_[i] == Place::free ? kink_rate_[i] : -kink_rate_[i];
    scratch_[k] = wanted - F_rate_[i];
    found.worst = std::max(found.worst, std::fabs(scratch_[k]));
    found.scale = std::max(found.scale, std::fabs(wanted) + std::fabs(rate(linear_rate_, i)));
    if (!pull_.empty()) found.terms = std::max(found.terms, std::fabs(pull_[i]));
  }
  found.terms += found.scale + sum_of(m, [&](Index k) {
                   const double ridge = problem_.ridge.empty() ? 0.0 : problem_.ridge[free_[k]];
                   return (largest_value_ + ridge) * std::fabs(beta_rate_[k]);
                 });
  return found;
}

// Solves with the residual in scratch_, and adds what comes out to the direction.
void ParametricRun::refine_direction() {
  const Index m = static_cast<Index>(free_.size());
  const int groups = problem_.has_equality ? problem_.n_groups() : 0;
  std::vector<double> change(scratch_);
  factor_.solve_plain(change.data());
  if (groups > 0) {
    double sums[kMostGroups] = {0.0, 0.0}, mu[kMostGroups] = {0.0, 0.0};
    for (Index k = 0; k < m; ++k) sums[problem_.group_of(free_[k])] -= change[k];
    multipliers(sums, mu);
    std::vector<double> ones(static_cast<std::size_t>(m));
    for (Index k = 0; k < m; ++k) ones[k] = mu[problem_.group_of(free_[k])];
    factor_.solve_plain(ones.data());
    for (Index k = 0; k < m; ++k) change[k] += ones[k];
    for (int g = 0; g < groups; ++g) theta_rate_[g] += mu[g];
  }
  for (Index k = 0; k < m; ++k) beta_rate_[k] += change[k];
  add_free_rows(change);
}

// The factor of the free block from rows of K. False, and the factor as it was, where rounding
// leaves the block without one.
bool ParametricRun::refactor() {
  const Index m = static_cast<Index>(free_.size());
  Buffer<double> M(m * m);
  std::vector<double> right(free_.size());
  std::vector<int> groups(free_.size());
  for (Index k = 0; k < m; ++k) {
    right[k] = right_of(free_[k]);
    groups[k] = group(free_[k]);
    for (Index r = k; r < m; ++r) {
      const bool is_mate = groups[k] >= 0 && group(free_[r]) == groups[k];
      M[k * m + r] = free_rows_[k][free_[r]] + (is_mate ? border_ : 0.0);
    }
    if (!problem_.ridge.empty()) M[k * m + k] += problem_.ridge[free_[k]];
  }
  if (!factor_.rebuild(M, right.data(), groups.data())) return false;
  ++refactorings_;
  return true;
}

// `infeasible`: the equality cannot follow.
PathStatus ParametricRun::direction() {
  const PathStatus status = enter_into_empty_group();
  if (status != PathStatus::running) return status;
  solve_direction();
  find_gradient_rate();
  if (free_.empty()) return PathStatus::running;
  Residual residual = residual_of_direction();
  if (residual.worst > kDeteriorated * residual.terms && factor_.changes() > 0 && refactor()) {
    solve_direction();
    find_gradient_rate();
    residual = residual_of_direction();
  }
  if (residual.terms > 0.0) residual_ = std::max(residual_, residual.worst / residual.terms);
  if (residual.worst > kRefine * residual.scale) refine_direction();
  return PathStatus::running;
}

}  // namespace kfu

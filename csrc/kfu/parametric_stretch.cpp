// One stretch of the path: direction, next event, step, change of places.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kfu/parametric_run.h"

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kFlat = 1e-11;       // rates below this, relative to the largest, are zero
constexpr double kNoise = 2e-15;      // of Σ|K β̇|: rates below this may be rounding
constexpr double kBarred = 1e-9;      // slopes of barred variables above this, relatively, are true
constexpr double kRefine = 1e-12;     // relative residual of a direction that is improved
constexpr Index kParallel = 1 << 19;  // products from which a second thread pays
constexpr Index kSlice = 512;         // columns one thread takes at a time, at least

}  // namespace

double ParametricRun::offset(Index i, bool up) const {
  if (kink_.empty()) return 0.0;
  if (place_[i] == Place::kink) return up ? kink_[i] : -kink_[i];
  if (place_[i] == Place::lower) return lower_[i] < 0.0 ? -kink_[i] : kink_[i];
  return upper_[i] > 0.0 ? kink_[i] : -kink_[i];
}

double ParametricRun::free_offset(Index i) const {
  if (kink_.empty()) return 0.0;
  return place_[i] == Place::free ? kink_[i] : -kink_[i];
}

double ParametricRun::end_high(Index i) const {
  return place_[i] == Place::free_below ? 0.0 : upper_[i];
}

double ParametricRun::end_low(Index i) const {
  return place_[i] == Place::free && has_kink() ? 0.0 : lower_[i];
}

// --- rates ---------------------------------------------------------------------------------------

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

// β̇ of the free variables, θ̇, and F˙ of all. `infeasible`: the equality cannot follow.
PathStatus ParametricRun::direction() {
  const PathStatus status = enter_into_empty_group();
  if (status != PathStatus::running) return status;
  const Index m = static_cast<Index>(free_.size());
  const int groups = problem_.has_equality ? problem_.n_groups() : 0;
  double need[kMostGroups] = {0.0, 0.0}, mu[kMostGroups] = {0.0, 0.0};
  for (int g = 0; g < groups; ++g)
    if (n_free_of_[g] > 0) need[g] = total_rate_[g] - pull_total_[g];
  const auto multipliers = [&](const double* right) {
    if (groups == 2 && n_free_of_[0] > 0 && n_free_of_[1] > 0) {
      const double a = factor_.aa(0, 0), b = factor_.aa(0, 1), d = factor_.aa(1, 1);
      const double det = a * d - b * b;
      mu[0] = (d * right[0] - b * right[1]) / det;
      mu[1] = (a * right[1] - b * right[0]) / det;
      return;
    }
    for (int g = 0; g < groups; ++g) mu[g] = n_free_of_[g] > 0 ? right[g] / factor_.aa(g, g) : 0.0;
  };
  double right[kMostGroups] = {0.0, 0.0};
  for (int g = 0; g < groups; ++g) right[g] = need[g] - factor_.az(g);
  multipliers(right);
  beta_rate_.resize(static_cast<std::size_t>(m));
  factor_.solve(mu, beta_rate_.data());
  if (groups > 0)
    for (Index k = 0; k < m; ++k) {  // one alone under a total that stays does not move at all
      const int g = problem_.group_of(free_[k]);
      if (n_free_of_[g] == 1 && need[g] == 0.0) beta_rate_[k] = 0.0;
    }
  for (int g = 0; g < groups; ++g)
    theta_rate_[g] = n_free_of_[g] > 0 ? mu[g] - border_ * need[g] : 0.0;

  F_rate_.resize(static_cast<std::size_t>(length_));
  const bool is_parallel = settings_.threads > 1 && m * length_ > kParallel;
  const Index slice = std::max(kSlice, (length_ + settings_.threads - 1) / settings_.threads);
  const Index slices = is_parallel ? (length_ + slice - 1) / slice : 1;
  const auto add = [&](const std::vector<double>& coef, double* out) {
    if (slices == 1) {
      loops_.add_rows(out, free_rows_.data(), coef.data(), m, length_);
      return;
    }
#pragma omp parallel for num_threads(settings_.threads) schedule(static)
    for (Index s = 0; s < slices; ++s) {
      const Index first = s * slice, last = std::min(first + slice, length_);
      std::vector<const double*> rows(free_rows_);
      for (const double*& row : rows) row += first;
      loops_.add_rows(out + first, rows.data(), coef.data(), m, last - first);
    }
  };
  for (Index i = 0; i < n_; ++i) F_rate_[i] = rate(linear_rate_, i);
  std::fill(F_rate_.begin() + n_, F_rate_.end(), 0.0);
  if (!pull_.empty())
    for (Index i = 0; i < length_; ++i) F_rate_[i] += pull_[i];
  if (!problem_.ridge.empty())
    for (Index k = 0; k < m; ++k) F_rate_[free_[k]] += problem_.ridge[free_[k]] * beta_rate_[k];
  add(beta_rate_, F_rate_.data());

  // The free variables have to stay at θ. Where rounding in an ill-conditioned system keeps them
  // from it, a second solve with the residual does.
  double scale = 0.0, worst = 0.0;
  scratch_.resize(static_cast<std::size_t>(m));
  for (Index k = 0; k < m; ++k) {
    const Index i = free_[k];
    const double th = groups ? theta_rate_[problem_.group_of(i)] : 0.0;
    double wanted = th;
    if (!kink_rate_.empty()) wanted -= place_[i] == Place::free ? kink_rate_[i] : -kink_rate_[i];
    scratch_[k] = wanted - F_rate_[i];
    worst = std::max(worst, std::fabs(scratch_[k]));
    scale = std::max(scale, std::fabs(wanted) + std::fabs(rate(linear_rate_, i)));
  }
  if (worst > kRefine * scale && m > 0) {
    std::vector<double> change(scratch_);
    factor_.solve_plain(change.data());
    double sums[kMostGroups] = {0.0, 0.0};
    for (Index k = 0; k < m && groups; ++k) sums[problem_.group_of(free_[k])] -= change[k];
    if (groups) {
      multipliers(sums);
      std::vector<double> ones(static_cast<std::size_t>(m));
      for (Index k = 0; k < m; ++k) ones[k] = mu[problem_.group_of(free_[k])];
      factor_.solve_plain(ones.data());
      for (Index k = 0; k < m; ++k) change[k] += ones[k];
      for (int g = 0; g < groups; ++g) theta_rate_[g] += mu[g];
    }
    for (Index k = 0; k < m; ++k) beta_rate_[k] += change[k];
    if (!problem_.ridge.empty())
      for (Index k = 0; k < m; ++k) F_rate_[free_[k]] += problem_.ridge[free_[k]] * change[k];
    add(change, F_rate_.data());
  }
  return PathStatus::running;
}

// --- next event ----------------------------------------------------------------------------------

ParametricRun::Event ParametricRun::next_event(double limit) {
  const Index m = static_cast<Index>(free_.size());
  double F_scale = 0.0, beta_scale = 0.0;
  for (Index i = 0; i < n_; ++i) F_scale = std::max(F_scale, std::fabs(F_rate_[i]));
  double moved = 0.0;
  for (Index k = 0; k < m; ++k) {
    beta_scale = std::max(beta_scale, std::fabs(beta_rate_[k]));
    moved += std::fabs(beta_rate_[k]);
  }
  const double flat_F = std::max(kFlat * F_scale, kNoise * largest_value_ * moved);
  const double flat_beta = kFlat * beta_scale;
  const bool least_index = takes_least_index();
  const bool has_barred = !barred_.empty();

  // Calls see(slack, fall, tolerance, strength, item, action) for all that comes nearer.
  const auto look = [&](auto&& see) {
    for (Index k = 0; k < m; ++k) {
      const Index i = free_[k];
      const bool is_above = place_[i] == Place::free;
      const double r = beta_rate_[k];
      const double high_rate = is_above ? rate(upper_rate_, i) : 0.0;
      const double low_rate = is_above && has_kink() ? 0.0 : rate(lower_rate_, i);
      const double up = r - high_rate, down = low_rate - r;
      if (up > flat_beta)
        see(end_high(i) - beta_[i], up, beta_tolerance_, up / beta_scale, k, Action::leave_high);
      if (down > flat_beta)
        see(beta_[i] - end_low(i), down, beta_tolerance_, down / beta_scale, k, Action::leave_low);
    }
    for (Index i = 0; i < n_; ++i) {
      const Place p = place_[i];
      if (is_free(p) || fixed_[i]) continue;
      const bool is_barred =
          has_barred && std::find(barred_.begin(), barred_.end(), i) != barred_.end();
      const double least_fall = is_barred ? std::max(flat_F, kBarred * F_scale) : flat_F;
      const int g = problem_.has_equality ? problem_.group_of(i) : 0;
      if (problem_.has_equality && n_free_of_[g] == 0) continue;
      const double base = F_[i] - theta_[g], base_rate = F_rate_[i] - theta_rate_[g];
      if (p != Place::upper) {
        double off_rate = 0.0;
        if (!kink_rate_.empty()) off_rate = offset(i, true) >= 0.0 ? kink_rate_[i] : -kink_rate_[i];
        const double fall = -(base_rate + off_rate);
        if (fall > 0.0) {
          const double slack = base + offset(i, true);
          if (fall > least_fall || (!is_barred && slack < -10.0 * slack_tolerance_))
            see(slack, fall, slack_tolerance_, fall / F_scale, i, Action::enter_up);
        }
      }
      if (p != Place::lower) {
        double off_rate = 0.0;
        if (!kink_rate_.empty()) off_rate = offset(i, false) > 0.0 ? kink_rate_[i] : -kink_rate_[i];
        const double fall = base_rate + off_rate;
        if (fall > 0.0) {
          const double slack = -(base + offset(i, false));
          if (fall > least_fall || (!is_barred && slack < -10.0 * slack_tolerance_))
            see(slack, fall, slack_tolerance_, fall / F_scale, i, Action::enter_down);
        }
      }
    }
  };

  // Harris' rule: the reach is where the first of them would be past zero by the tolerance; of
  // those that come to zero before it, the steepest. Few are nearer than all before them, so the
  // list of those that may be chosen is short.
  candidates_.clear();
  double reach = limit;
  look(
      [&](double slack, double fall, double tolerance, double strength, Index item, Action action) {
        const double room = std::max(slack, 0.0);
        if (room > reach * fall) return;
        candidates_.push_back({room / fall, strength, item, action});
        const double past = room + (least_index ? 0.0 : tolerance);
        if (past < reach * fall) reach = past / fall;
      });
  Event event;
  event.length = limit;
  double best = -1.0;
  Index best_item = n_;
  for (const Candidate& c : candidates_) {
    if (!(c.length < limit) || c.length > reach) continue;
    const bool is_leaving = c.action == Action::leave_high || c.action == Action::leave_low;
    const Index variable = is_leaving ? free_[c.item] : c.item;
    if (least_index ? variable >= best_item : c.strength <= best) continue;
    best = c.strength;
    best_item = variable;
    event = {c.length, c.item, c.action};
  }
  consider_empty_groups(limit, event);
  return event;
}

// The interval of θ of a group without free variables closes where the largest F + offset of those
// that can fall meets the smallest of those that can grow: the zero of a convex piecewise linear
// function, found by Newton's method from the right.
void ParametricRun::consider_empty_groups(double limit, Event& event) {
  if (!problem_.has_equality) return;
  for (int g = 0; g < problem_.n_groups(); ++g) {
    if (n_free_of_[g] > 0) continue;
    double s = std::min(event.length, limit);
    for (;;) {
      Index low = -1, high = -1;
      double low_value = -kInf, high_value = kInf, low_rate = 0.0, high_rate = 0.0;
      for (Index i = 0; i < n_; ++i) {
        if (fixed_[i] || group(i) != g) continue;
        const double kr = kink_rate_.empty() ? 0.0 : kink_rate_[i];
        if (place_[i] != Place::lower) {
          const double off = offset(i, false), r = F_rate_[i] + (off > 0.0 ? kr : -kr);
          if (F_[i] + off + s * r > low_value) {
            low_value = F_[i] + off + s * r;
            low_rate = r;
            low = i;
          }
        }
        if (place_[i] != Place::upper) {
          const double off = offset(i, true), r = F_rate_[i] + (off >= 0.0 ? kr : -kr);
          if (F_[i] + off + s * r < high_value) {
            high_value = F_[i] + off + s * r;
            high_rate = r;
            high = i;
          }
        }
      }
      const double over = low_value - high_value, slope = low_rate - high_rate;
      if (low < 0 || high < 0 || over < 0.0 || !(slope > 0.0)) break;
      const double back = over / slope;
      event.length = std::max(0.0, s - back);
      event.item = low;
      event.action = Action::enter_down;
      if (s - back <= 0.0 || back <= 1e-15 * s) break;
      s -= back;
    }
  }
}

// --- step ----------------------------------------------------------------------------------------

void ParametricRun::move(double length) {
  const double before = t_;
  if (length > 0.0) {
    entered_here_.clear();
    barred_.clear();
    for (Index k = 0; k < length_; ++k) F_[k] += length * F_rate_[k];
    for (std::size_t k = 0; k < free_.size(); ++k) beta_[free_[k]] += length * beta_rate_[k];
    if (t_direction_ != 0) t_ += t_direction_ * length;
    const auto drift = [&](std::vector<double>& values, const std::vector<double>& rates) {
      if (rates.empty()) return;
      for (Index i = 0; i < n_; ++i) values[i] += length * rates[i];
    };
    drift(linear_, linear_rate_);
    drift(lower_, lower_rate_);
    drift(upper_, upper_rate_);
    drift(kink_, kink_rate_);
    if (!lower_rate_.empty() || !upper_rate_.empty())
      for (Index i = 0; i < n_; ++i) {
        if (place_[i] == Place::lower) beta_[i] = lower_[i];
        if (place_[i] == Place::upper) beta_[i] = upper_[i];
      }
    for (int g = 0; g < kMostGroups; ++g) theta_[g] += length * theta_rate_[g];
  }
  settle_theta();
  if (settings_.records && t_direction_ != 0) count_signs(before, length);
}

// The direction; a variable that has to enter for it does so still at this t.
PathStatus ParametricRun::direction_from_here() {
  const std::size_t seen = events_.size();
  const PathStatus status = direction();
  if (events_.size() != seen) record(false);
  return status;
}

PathStatus ParametricRun::stretch(double limit, double* length) {
  *length = 0.0;
  const PathStatus status = direction_from_here();
  if (status != PathStatus::running) return status;
  const Event event = next_event(limit);
  move(event.length);
  *length = event.length;
  return apply(event);
}

PathStatus ParametricRun::apply(const Event& event) {
  switch (event.action) {
    case Action::none:
      return PathStatus::running;
    case Action::leave_high:
    case Action::leave_low: {
      const Index i = free_[event.item];
      const int g = group(i);
      // One that comes and goes at the same t does so for rounding in its slope: not again here.
      if (std::find(entered_here_.begin(), entered_here_.end(), i) != entered_here_.end())
        barred_.push_back(i);
      leave(event.item, event.action == Action::leave_high);
      if (g >= 0 && n_free_of_[g] == 1) leave_with_last(g);
      return PathStatus::running;
    }
    default:
      break;
  }
  const bool up = event.action == Action::enter_up;
  const int g = group(event.item);
  if (g >= 0 && n_free_of_[g] == 0) theta_[g] = F_[event.item] + offset(event.item, up);
  return enter(event.item, up ? 1 : -1);
}

}  // namespace kfu

// One stretch of the path: next event, step, change of places. Its direction is in
// parametric_direction.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kfu/vector_scans.h"

#include "kfu/parametric_run.h"

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kFlat = 1e-11;   // rates below this, relative to the largest, are zero
constexpr double kNoise = 2e-15;  // of Σ|K β̇|: rates below this may be rounding
constexpr double kBarred = 1e-9;  // slopes of barred variables above this, relatively, are true

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

// --- next event ----------------------------------------------------------------------------------

ParametricRun::Event ParametricRun::next_event(double limit) {
  const Index m = static_cast<Index>(free_.size());
  const double F_scale = largest_magnitude(F_rate_.data(), n_);
  const double beta_scale = largest_magnitude(beta_rate_.data(), m);
  const double moved = sum_of(m, [&](Index k) { return std::fabs(beta_rate_[k]); });
  const double flat_F = std::max(kFlat * F_scale, kNoise * largest_value_ * moved);
  const double flat_beta = kFlat * beta_scale;
  const bool least_index = takes_least_index();
  const bool has_barred = !barred_.empty();

  // Harris' rule: the reach is where the first of them would be past zero by the tolerance; of
  // those that come to zero before it, the steepest. Few are nearer than all before them, so the
  // list of those that may be chosen is short.
  candidates_.clear();
  double reach = limit;
  const auto see = [&](double slack, double fall, double tolerance, double strength, Index item,
                       Action action) {
    const double room = std::max(slack, 0.0);
    if (room > reach * fall) return;
    candidates_.push_back({room / fall, strength, item, action});
    const double past = room + (least_index ? 0.0 : tolerance);
    if (past < reach * fall) reach = past / fall;
  };
  const auto look_at_free = [&](Index k) {
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
  };
  const auto look_at_bounded = [&](Index i) {
    const Place p = place_[i];
    if (is_free(p) || fixed_[i]) return;
    const bool is_barred =
        has_barred && std::find(barred_.begin(), barred_.end(), i) != barred_.end();
    const double least_fall = is_barred ? std::max(flat_F, kBarred * F_scale) : flat_F;
    const int g = problem_.has_equality ? problem_.group_of(i) : 0;
    if (problem_.has_equality && n_free_of_[g] == 0) return;
    const double base = F_[i] - theta_[g], base_rate = F_rate_[i] - theta_rate_[g];
    const auto falls = [&](double slack, double fall, Action action) {
      if (!(fall > 0.0)) return;
      if (fall > least_fall || (!is_barred && slack < -10.0 * slack_tolerance_))
        see(slack, fall, slack_tolerance_, fall / F_scale, i, action);
    };
    const double kink_rate = rate(kink_rate_, i);
    if (p != Place::upper) {
      const double off = offset(i, true);
      falls(base + off, -(base_rate + (off >= 0.0 ? kink_rate : -kink_rate)), Action::enter_up);
    }
    if (p != Place::lower) {
      const double off = offset(i, false);
      falls(-(base + off), base_rate + (off > 0.0 ? kink_rate : -kink_rate), Action::enter_down);
    }
  };
  for (Index k = 0; k < m; ++k) look_at_free(k);
  if (is_plain()) {  // one test passes over nearly all of them
    const double th = theta_[0], th_rate = theta_rate_[0];
    for (Index i = 0; i < n_; ++i) {
      const double slack = side_[i] * (F_[i] - th), fall = side_[i] * (th_rate - F_rate_[i]);
      if ((fall > 0.0) & (slack <= reach * fall)) look_at_bounded(i);
    }
  } else {
    for (Index i = 0; i < n_; ++i) look_at_bounded(i);
  }
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

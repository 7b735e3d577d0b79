// Variables that become free or stop being free, and what is done where one depends on the others.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kfu/parametric_run.h"

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kDependent = 1e-13;   // pivots below this, relative to the diagonal, are zero
constexpr double kIndefinite = -1e-7;  // and below this the kernel is not positive semidefinite

}  // namespace

void ParametricRun::put(Index i, Place place) {
  place_[i] = place;
  side_[i] = 0.0;
  if (!fixed_[i] && (place == Place::lower || place == Place::upper))
    side_[i] = place == Place::lower ? 1.0 : -1.0;
}

void ParametricRun::set_place(Index i, Place place) {
  put(i, place);
  if (settings_.records) events_.push_back({i, place});
}

void ParametricRun::insert_free(Index i, double pivot) {
  free_.push_back(i);
  held_.emplace_back(*rows_, i);
  free_rows_.push_back(held_.back().values());
  factor_.insert(pivot, right_of(i), group(i));
  if (group(i) >= 0) ++n_free_of_[group(i)];
}

void ParametricRun::leave(Index at, bool high) {
  const Index i = free_[at];
  const double end = high ? end_high(i) : end_low(i);
  const Place place = place_left(place_[i], high, has_kink(), end);
  factor_.remove(at);
  free_.erase(free_.begin() + at);
  free_rows_.erase(free_rows_.begin() + at);
  held_.erase(held_.begin() + at);
  if (group(i) >= 0) --n_free_of_[group(i)];
  beta_[i] = end;
  set_place(i, place);
  const bool moves = high ? rate(upper_rate_, i) != 0.0 : rate(lower_rate_, i) != 0.0;
  if (moves && place != Place::kink) rates_changed();
}

// The last free variable of a group whose total stays cannot move. If it is at an end of its piece,
// as where two variables met their bounds together, it is no more free than the other: θ then has
// an interval.
void ParametricRun::leave_with_last(int g) {
  if (total_rate_[g] - pull_total_[g] == 0.0) leave_if_all_at_ends(g);
}

/// 1 or −1 where a free variable is at the high or low end of its piece, 0 inside.
int ParametricRun::end_of(Index i) const {
  if (end_high(i) - beta_[i] <= 10.0 * beta_tolerance_) return 1;
  return beta_[i] - end_low(i) <= 10.0 * beta_tolerance_ ? -1 : 0;
}

void ParametricRun::leave_if_all_at_ends(int g) {
  for (Index i : free_)
    if (group(i) == g && end_of(i) == 0) return;
  for (Index k = static_cast<Index>(free_.size()) - 1; k >= 0; --k)
    if (group(free_[k]) == g) leave(k, end_of(free_[k]) > 0);
}

// The first of the free variables (their place in the list; −1: variable i itself) to meet an end
// when i moves by `sign` and the free ones by −sign·v. Of ties the one that moves most.
Index ParametricRun::blocking(Index i, int sign, const std::vector<double>& v, double* length) {
  const double own = sign > 0 ? end_high(i) - beta_[i] : beta_[i] - end_low(i);
  double largest = 1.0;
  for (double x : v) largest = std::max(largest, std::fabs(x));
  const auto room = [&](std::size_t k) {
    const double r = -sign * v[k];
    if (std::fabs(r) <= 1e-9 * largest) return kInf;
    const Index f = free_[k];
    return std::max(0.0, r > 0.0 ? end_high(f) - beta_[f] : beta_[f] - end_low(f)) / std::fabs(r);
  };
  const bool least_index = takes_least_index();
  double reach = own;
  for (std::size_t k = 0; k < v.size(); ++k)
    reach = std::min(reach, room(k) + (least_index ? 0.0 : beta_tolerance_ / largest));
  Index best = -1;
  double strength = own <= reach ? 1.0 : 0.0;
  Index variable = own <= reach ? i : n_;
  *length = own;
  for (std::size_t k = 0; k < v.size(); ++k) {
    const double s = room(k);
    if (s > reach) continue;
    if (least_index ? free_[k] < variable : std::fabs(v[k]) > strength) {
      strength = std::fabs(v[k]);
      variable = free_[k];
      best = static_cast<Index>(k);
      *length = s;
    }
  }
  return best;
}

PathStatus ParametricRun::enter(Index i, int sign) {
  const Place from = place_[i];
  const bool kinked = has_kink();
  put(i, place_entered(from, sign, kinked, lower_[i], upper_[i]));
  const bool moved = (from == Place::lower && rate(lower_rate_, i) != 0.0) ||
                     (from == Place::upper && rate(upper_rate_, i) != 0.0);
  if (moved) rates_changed();
  const HeldRow held(*rows_, i);
  const double* row = held.values();
  const double ridge = problem_.ridge.empty() ? 0.0 : problem_.ridge[i];
  const double diagonal = rows_->diagonal()[i] + ridge + (group(i) >= 0 ? border_ : 0.0);
  PathStatus status = PathStatus::running;
  for (;;) {
    scratch_.resize(free_.size());
    for (std::size_t k = 0; k < free_.size(); ++k)
      scratch_[k] = row[free_[k]] + (group(i) >= 0 && group(free_[k]) == group(i) ? border_ : 0.0);
    const double pivot = factor_.try_insert(scratch_.data(), diagonal);
    const double scale = std::max(diagonal, border_);
    if (pivot > kDependent * scale) {
      insert_free(i, pivot);
      set_place(i, place_[i]);
      entered_here_.push_back(i);
      break;
    }
    if (pivot < kIndefinite * scale) {
      put(i, from);
      status = PathStatus::indefinite;
      break;
    }
    // Nothing but β changes along (−v, 1).
    std::vector<double> v(free_.size());
    factor_.dependence(v.data());
    double length = 0.0;
    const Index block = blocking(i, sign, v, &length);
    if (!(length < kInf)) {
      put(i, from);
      status = PathStatus::infeasible;
      break;
    }
    if (length > 0.0) {
      std::vector<double> change(v.size());
      for (std::size_t k = 0; k < v.size(); ++k) {
        change[k] = -sign * length * v[k];
        beta_[free_[k]] += change[k];
        if (!problem_.ridge.empty()) F_[free_[k]] += problem_.ridge[free_[k]] * change[k];
      }
      beta_[i] += sign * length;
      F_[i] += ridge * sign * length;
      std::vector<const double*> rows(free_rows_);
      rows.push_back(row);
      change.push_back(sign * length);
      loops_.add_rows(F_.data(), rows.data(), change.data(), static_cast<Index>(rows.size()),
                      length_);
    }
    if (block < 0) {
      const bool ends_at_kink = kinked && (place_[i] == Place::free ? sign < 0 : sign > 0);
      beta_[i] = sign > 0 ? end_high(i) : end_low(i);
      set_place(i, ends_at_kink ? Place::kink : (sign > 0 ? Place::upper : Place::lower));
      if (!lower_rate_.empty() || !upper_rate_.empty()) rates_changed();
      break;
    }
    leave(block, -sign * v[block] > 0.0);
  }
  return status;
}

}  // namespace kfu

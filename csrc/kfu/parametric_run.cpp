// Start, corrections, breakpoints. A single stretch is in parametric_stretch.cpp.
#include "kfu/parametric_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kfu/vector_scans.h"

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kRelative = 1e-13;    // slacks and bounds are met when this close, relatively
constexpr double kRounding = 2e-16;    // of Σ|K β|: what a sum of products may be off
constexpr double kSnap = 1e-9;         // of its box: a start this close to a bound is at it
constexpr double kSameT = 1e-13;       // relative: breakpoints closer than this are one
constexpr double kWorse = 1e3;         // times the tolerance: a violation to be corrected at once
constexpr double kFallOfT = 0.25;      // of t since the last correction: time for another
constexpr Index kMostCorrections = 8;  // in a row, until a start is exact
constexpr Index kRowsAtOnce = 64;      // rows held together while they are added up
constexpr Index kShortInterval = 16, kLongInterval = 1024;

}  // namespace

ParametricRun::ParametricRun(std::shared_ptr<KernelRows> rows, ParametricProblem problem,
                             const std::vector<double>& beta, double t,
                             const ParametricSettings& settings, const Lapack& lapack)
    : rows_(std::move(rows)),
      problem_(std::move(problem)),
      settings_(settings),
      loops_(smo_loops<double, double>(rows_->simd())),
      n_(problem_.size()),
      length_(rows_->length()),
      t_(t),
      beta_(beta),
      F_(static_cast<std::size_t>(length_), 0.0),
      place_(static_cast<std::size_t>(n_), Place::lower),
      fixed_(static_cast<std::size_t>(n_), 0),
      side_(static_cast<std::size_t>(n_), 0.0),
      factor_(lapack, problem_.has_equality ? problem_.n_groups() : 0) {
  double sum = 0.0;
  for (double d : rows_->diagonal()) {
    sum += d;
    largest_value_ = std::max(largest_value_, d);
  }
  border_ = problem_.has_equality ? (sum > 0.0 ? sum / static_cast<double>(n_) : 1.0) : 0.0;
  linear_.resize(beta_.size());
  lower_.resize(beta_.size());
  upper_.resize(beta_.size());
  if (problem_.has_kink()) kink_.resize(beta_.size());
  find_places();
  recompute();
  for (Index i = 0; i < n_ && status_ == PathStatus::running; ++i) {
    if (!is_free(place_[i])) continue;
    const bool is_below = place_[i] == Place::free_below;
    put(i, is_below || has_kink() ? Place::kink : Place::lower);
    status_ = enter(i, is_below ? -1 : 1);
  }
  if (status_ == PathStatus::running) status_ = correct_until_exact();
  events_.clear();
  first_places_ = place_;
  until_correction_ = correction_interval_;
  if (settings_.records) {
    count_signs(t_, 0.0);
    sign_changes_.clear();
    record(true);
  }
}

// Values at t_, and the place of every variable: at a bound if it is close to it.
void ParametricRun::find_places() {
  for (Index i = 0; i < n_; ++i) {
    linear_[i] = problem_.linear.at(i, t_);
    lower_[i] = problem_.lower.at(i, t_);
    upper_[i] = problem_.upper.at(i, t_);
    if (!kink_.empty()) kink_[i] = problem_.kink.at(i, t_);
    const bool moves = problem_.lower.rate_of(i) != problem_.upper.rate_of(i);
    fixed_[i] = lower_[i] >= upper_[i] && !moves;
    double width = upper_[i] - lower_[i];
    if (!(width < kInf)) width = std::max(1.0, std::fabs(beta_[i]));
    const double near = kSnap * width;
    const bool has_kink = this->has_kink();
    if (beta_[i] <= lower_[i] + near) {
      put(i, has_kink && lower_[i] == 0.0 ? Place::kink : Place::lower);
      beta_[i] = lower_[i];
    } else if (beta_[i] >= upper_[i] - near) {
      put(i, has_kink && upper_[i] == 0.0 ? Place::kink : Place::upper);
      beta_[i] = upper_[i];
    } else if (has_kink && std::fabs(beta_[i]) <= near) {
      put(i, Place::kink);
      beta_[i] = 0.0;
    } else {
      put(i, has_kink && beta_[i] < 0.0 ? Place::free_below : Place::free);
    }
  }
}

void ParametricRun::add_rows(const Index* items, const double* coef, Index count,
                             double* out) const {
  std::vector<HeldRow> held;
  std::vector<const double*> rows;
  for (Index first = 0; first < count; first += kRowsAtOnce) {
    const Index last = std::min(first + kRowsAtOnce, count);
    held.clear();
    rows.clear();
    for (Index k = first; k < last; ++k) {
      held.emplace_back(*rows_, items[k]);
      rows.push_back(held.back().values());
    }
    loops_.add_rows(out, rows.data(), coef + first, last - first, length_);
  }
}

// F from β, and the constants from t_.
void ParametricRun::recompute() {
  std::vector<Index> items;
  std::vector<double> coef;
  for (Index i = 0; i < n_; ++i) {
    linear_[i] = problem_.linear.at(i, t_);
    if (!kink_.empty()) kink_[i] = problem_.kink.at(i, t_);
    if (beta_[i] != 0.0) {
      items.push_back(i);
      coef.push_back(beta_[i]);
    }
  }
  std::vector<double> fresh(static_cast<std::size_t>(length_), 0.0);
  const Index count = static_cast<Index>(items.size());
  if (rows_->is_full())
    add_rows(items.data(), coef.data(), count, fresh.data());
  else
    rows_->accumulate(items.data(), coef.data(), count, fresh.data());
  output_scale_ = 0.0;
  double linear_scale = 0.0, beta_scale = 0.0, beta_sum = 0.0;
  for (Index i = 0; i < n_; ++i) {
    if (!problem_.ridge.empty()) fresh[i] += problem_.ridge[i] * beta_[i];
    output_scale_ = std::max(output_scale_, std::fabs(fresh[i]));
    linear_scale = std::max(linear_scale, std::fabs(linear_[i]));
    beta_scale = std::max(beta_scale, std::fabs(beta_[i]));
    beta_sum += std::fabs(beta_[i]);
    fresh[i] += linear_[i];
  }
  F_.swap(fresh);
  slack_tolerance_ =
      std::max(kRelative * (output_scale_ + linear_scale), kRounding * largest_value_ * beta_sum);
  beta_tolerance_ = kRelative * beta_scale;
}

// θ of groups without free variables: the middle of their interval.
void ParametricRun::settle_theta() {
  if (!problem_.has_equality) return;
  for (int g = 0; g < problem_.n_groups(); ++g) {
    if (n_free_of_[g] > 0) continue;
    const double low = theta_low(g), high = theta_high(g);
    if (low > -kInf && high < kInf)
      theta_[g] = 0.5 * (low + high);
    else if (low > -kInf)
      theta_[g] = low;
    else if (high < kInf)
      theta_[g] = high;
  }
}

double ParametricRun::theta_low(int g) const {
  double low = -kInf;
  for (Index i = 0; i < n_; ++i) {
    if (fixed_[i] || group(i) != g) continue;
    if (is_free(place_[i])) return theta_[g];
    if (place_[i] != Place::lower) low = std::max(low, F_[i] + offset(i, false));
  }
  return low;
}

double ParametricRun::theta_high(int g) const {
  double high = kInf;
  for (Index i = 0; i < n_; ++i) {
    if (fixed_[i] || group(i) != g) continue;
    if (is_free(place_[i])) return theta_[g];
    if (place_[i] != Place::upper) high = std::min(high, F_[i] + offset(i, true));
  }
  return high;
}

// Recomputes the gradient and takes what it violates back along a path at the same t.
PathStatus ParametricRun::correct() {
  ++corrections_;
  corrected_at_ = std::fabs(t_);
  const std::vector<double> maintained = F_;
  recompute();
  double drift = 0.0;
  for (Index i = 0; i < n_; ++i) drift = std::max(drift, std::fabs(F_[i] - maintained[i]));
  if (corrections_ > 1) drift_ = std::max(drift_, drift);
  const Index wanted =
      drift > 1e3 * slack_tolerance_ ? correction_interval_ / 2 : 2 * correction_interval_;
  correction_interval_ = std::min(std::max(wanted, kShortInterval), kLongInterval);
  until_correction_ = correction_interval_;

  clear_rates();
  if (problem_.has_equality) {
    for (int g = 0; g < problem_.n_groups(); ++g) {
      double sum = 0.0, off = 0.0, size = 0.0;
      Index count = 0;
      for (Index i = 0; i < n_; ++i) {
        if (group(i) != g) continue;
        sum += beta_[i];
        size += std::fabs(beta_[i]);
        if (is_free(place_[i])) {
          off += F_[i] + free_offset(i);
          ++count;
        }
      }
      if (count > 0) theta_[g] = off / static_cast<double>(count);
      const double missing = problem_.total[g] + t_ * problem_.total_rate[g] - sum;
      if (std::fabs(missing) > 1e-15 * size) total_rate_[g] = missing;
    }
    settle_theta();
  }
  std::vector<double> shift(static_cast<std::size_t>(n_), 0.0);
  double worst = 0.0;
  for (Index i = 0; i < n_; ++i) {
    if (fixed_[i]) continue;
    const double th = theta_of(i);
    double v = 0.0;
    if (is_free(place_[i])) {
      v = th - free_offset(i) - F_[i];
    } else {
      if (place_[i] != Place::upper) v = std::max(0.0, th - F_[i] - offset(i, true));
      if (place_[i] != Place::lower && v == 0.0) v = std::min(0.0, th - F_[i] - offset(i, false));
    }
    shift[i] = v;
    worst = std::max(worst, std::fabs(v));
  }
  const bool has_missing = total_rate_[0] != 0.0 || total_rate_[1] != 0.0;
  if (worst <= 0.1 * slack_tolerance_ && !has_missing) {
    rates_changed();
    return PathStatus::running;
  }
  linear_rate_.assign(static_cast<std::size_t>(n_), 0.0);
  for (Index i = 0; i < n_; ++i) {
    linear_[i] += shift[i];
    F_[i] += shift[i];
    linear_rate_[i] = -shift[i];
  }
  t_direction_ = 0;
  rates_changed();
  double left = 1.0;
  const Index most = 50 * (n_ + 20);
  zero_steps_ = 0;
  for (Index k = 0; left > 0.0; ++k) {
    double length = 0.0;
    const PathStatus status = stretch(left, &length);
    if (status != PathStatus::running) return status;
    left = length >= left ? 0.0 : left - length;
    zero_steps_ = length > 0.0 ? 0 : zero_steps_ + 1;
    if (k > most) return PathStatus::stuck;
  }
  zero_steps_ = 0;
  clear_rates();
  return PathStatus::running;
}

PathStatus ParametricRun::correct_until_exact() {
  PathStatus status = PathStatus::running;
  for (Index k = 0; k < kMostCorrections && status == PathStatus::running; ++k) {
    status = correct();
    recompute();
    settle_theta();
    if (worst_violation() <= 10.0 * slack_tolerance_) break;
  }
  clear_rates();
  return status;
}

// Gives the slacks of tied variables different tiny values, until the next correction.
void ParametricRun::perturb() {
  ++restarts_;
  for (Index i = 0; i < n_; ++i) {
    if (fixed_[i] || is_free(place_[i])) continue;
    // A number in [1, 2) that is different for neighbours: the fractional part of i·golden ratio.
    const double golden = 0.6180339887498949 * static_cast<double>(i + 1);
    const double wanted = 200.0 * slack_tolerance_ * (1.0 + golden - std::floor(golden));
    const double th = theta_of(i);
    double v = 0.0;
    if (place_[i] != Place::upper) v = std::max(0.0, wanted - (F_[i] + offset(i, true) - th));
    if (place_[i] != Place::lower && v == 0.0)
      v = -std::max(0.0, wanted - (th - F_[i] - offset(i, false)));
    F_[i] += v;
    linear_[i] += v;
  }
  until_correction_ = kShortInterval;
}

double ParametricRun::worst_violation() const {
  if (is_plain()) {
    const double th = problem_.has_equality ? theta_[0] : 0.0;
    double worst = largest_of(n_, [&](Index i) { return side_[i] * (th - F_[i]); });
    for (Index i : free_) worst = std::max(worst, std::fabs(F_[i] - th));
    return worst;
  }
  double worst = 0.0;
  for (Index i = 0; i < n_; ++i) {
    if (fixed_[i]) continue;
    const double th = theta_of(i);
    if (is_free(place_[i])) {
      worst = std::max(worst, std::fabs(F_[i] + free_offset(i) - th));
      continue;
    }
    if (place_[i] != Place::upper) worst = std::max(worst, th - F_[i] - offset(i, true));
    if (place_[i] != Place::lower) worst = std::max(worst, F_[i] + offset(i, false) - th);
  }
  return worst;
}

double ParametricRun::output(Index k) const { return k < n_ ? F_[k] - linear_[k] : F_[k]; }

void ParametricRun::record(bool is_new) {
  if (!settings_.records) return;
  if (is_new || breakpoints_.empty()) breakpoints_.emplace_back();
  if (breakpoints_.size() == 1) {  // what happens at the start is part of the start
    events_.clear();
    first_places_ = place_;
  }
  Breakpoint& b = breakpoints_.back();
  b.t = t_;
  b.theta[0] = theta_[0];
  b.theta[1] = theta_[1];
  b.kkt = worst_violation();
  b.n_free = static_cast<Index>(free_.size());
  b.n_null = std::count(beta_.begin(), beta_.end(), 0.0);
  for (Index i : free_) b.n_null -= beta_[i] == 0.0 ? 1 : 0;
  b.n_bound = n_ - b.n_free - b.n_null;
  b.objective =
      sum_of(n_, [&](Index i) { return 0.5 * beta_[i] * (F_[i] + linear_[i]); }) +
      (has_kink() ? sum_of(n_, [&](Index i) { return kink_[i] * std::fabs(beta_[i]); }) : 0.0);
  b.errors[0] = n_wrong_[0];
  b.errors[1] = n_wrong_[1];
  b.end_of_events = static_cast<Index>(events_.size());
}

// Corrects in the middle of the coming stretch: at a breakpoint rounding decides on which side of
// it a variable is, and a correction might turn that round.
PathStatus ParametricRun::correct_halfway(double stop, int way) {
  if (t_direction_ != way) use_path_rates(way);
  const PathStatus status = direction_from_here();
  if (status != PathStatus::running) return status;
  const Event event = next_event(std::fabs(stop - t_));
  if (!(event.length > kSameT * std::fabs(t_))) return PathStatus::running;  // not yet
  move(0.5 * event.length);
  const std::size_t seen = events_.size();
  const PathStatus corrected = correct();
  if (events_.size() != seen) record(true);  // other places from here on, as where rows depend
  return corrected;
}

PathStatus ParametricRun::advance(double stop, Index most_steps) {
  const int way = stop > t_ ? 1 : -1;  // of t
  if (status_ != PathStatus::running && status_ != PathStatus::done) return status_;
  status_ = PathStatus::running;
  Index restarts_here = 0;
  for (Index taken = 0; taken < most_steps;) {
    if (t_ == stop) return status_ = PathStatus::done;
    if (until_correction_ <= 0) {
      const PathStatus status = correct_halfway(stop, way);
      if (status != PathStatus::running && status != PathStatus::stuck) return status_ = status;
    }
    if (t_direction_ != way) use_path_rates(way);
    double length = 0.0;
    const double limit = std::fabs(stop - t_);
    const PathStatus status = stretch(limit, &length);
    if (length >= limit) t_ = stop;
    ++steps_;
    const bool is_new = length > kSameT * std::fabs(t_);
    if (is_new) {
      ++taken;
      --until_correction_;
      zero_steps_ = 0;
      restarts_here = 0;
    } else {
      ++zero_steps_;
      if (zero_steps_ > 20 * (n_ + 50)) {
        if (++restarts_here > 30) return status_ = PathStatus::stuck;
        perturb();
        zero_steps_ = 0;
      }
    }
    record(is_new);
    // Rounding counts beside t, which may fall by decades, and a violation is not carried along.
    const bool is_worse = settings_.records && breakpoints_.back().kkt > kWorse * slack_tolerance_;
    if (is_worse || std::fabs(t_) < kFallOfT * corrected_at_)
      until_correction_ = std::min(until_correction_, is_new ? Index{0} : until_correction_);
    if (status != PathStatus::running) return status_ = status;
    if (settings_.stop_without_bound && !breakpoints_.empty() && breakpoints_.back().n_bound == 0)
      status_ = PathStatus::no_bound;
    if (t_ == stop) status_ = PathStatus::done;
    if (status_ != PathStatus::running) {
      // At a hard margin rows are about to leave the cost; a correction might put one back.
      if (status_ == PathStatus::done && correct() == PathStatus::running) record(false);
      return status_;
    }
  }
  return status_;
}

PathStatus ParametricRun::close_boxes(const Index* items, Index count, const double* total_change) {
  clear_rates();
  bool moves = false;
  for (Index j = 0; j < count; ++j) {
    const Index p = items[j];
    for (std::size_t k = 0; k < free_.size(); ++k)
      if (free_[k] == p) {
        const double value = beta_[p];
        leave(static_cast<Index>(k), value > 0.0);
        beta_[p] = value;
        break;
      }
    fixed_[p] = 1;
    put(p, beta_[p] > 0.0 ? Place::upper : Place::lower);
    lower_[p] = upper_[p] = beta_[p];
    if (beta_[p] == 0.0) continue;
    moves = true;
    if (lower_rate_.empty()) {
      lower_rate_.assign(static_cast<std::size_t>(n_), 0.0);
      upper_rate_.assign(static_cast<std::size_t>(n_), 0.0);
    }
    lower_rate_[p] = upper_rate_[p] = -beta_[p];
  }
  if (total_change != nullptr && problem_.has_equality)
    for (int g = 0; g < problem_.n_groups(); ++g) {
      total_rate_[g] = total_change[g];
      moves = moves || total_change[g] != 0.0;
    }
  settle_theta();
  if (!moves) return PathStatus::running;
  t_direction_ = 0;
  rates_changed();
  double left = 1.0;
  zero_steps_ = 0;
  const Index most = 200 * (n_ + 20);
  for (Index k = 0; left > 0.0; ++k) {
    double length = 0.0;
    const PathStatus status = stretch(left, &length);
    if (status != PathStatus::running) return status;
    left = length >= left ? 0.0 : left - length;
    zero_steps_ = length > 0.0 ? 0 : zero_steps_ + 1;
    if (zero_steps_ > 20 * (n_ + 50)) {
      perturb();
      zero_steps_ = 0;
    }
    if (k > most) return PathStatus::stuck;
  }
  for (Index j = 0; j < count; ++j) beta_[items[j]] = lower_[items[j]] = upper_[items[j]] = 0.0;
  clear_rates();
  for (int g = 0; problem_.has_equality && g < problem_.n_groups(); ++g) leave_if_all_at_ends(g);
  settle_theta();
  return PathStatus::running;
}

}  // namespace kfu

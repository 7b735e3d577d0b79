#include "kfu/parametric_closing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kfu/vector_scans.h"

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kFlat = 1e-11;   // rates below this, relative to the largest, are zero
constexpr double kNoise = 2e-15;  // of Σ|K β̇|: rates below this may be rounding
constexpr double kPivot = 1e-8;   // pivots below this, relative to the diagonal, are not decided
constexpr double kBeyond = 1e4;   // times a tolerance (1e-13, relatively): not rounding any more
constexpr Index kMostChanged = 128;
constexpr Index kMostSteps = 1000;
constexpr Index kMostZeroSteps = 32;

}  // namespace

ParametricClosing::ParametricClosing(const ParametricTableau& tableau)
    : tableau_(tableau), loops_(tableau.run().loops_) {
  rate_.resize(static_cast<std::size_t>(tableau.length()));
}

void ParametricClosing::start(const Index* items, Index count, const double* total_change) {
  following_ = tableau_.following();
  given_ = tableau_.given();
  low_ = tableau_.low();
  high_ = tableau_.high();
  place_ = tableau_.run().place_;
  closed_.clear();
  changed_.clear();
  inverse_.clear();
  driving_.clear();
  driving_rate_.clear();
  is_regular_ = true;
  steps_ = 0;
  spares_.resize(static_cast<std::size_t>(kMostChanged + count + 1));
  for (Index j = 0; j < count; ++j) {
    const Index q = tableau_.position(items[j]);
    closed_.push_back(q);
    low_[q] = -kInf;
    high_[q] = kInf;
    if (q < tableau_.n_free()) {
      is_regular_ = is_regular_ && join(q, -following_[q], -kInf, kInf);
    } else if (given_[q] != 0.0) {
      driving_.push_back(
          tableau_.column(q, spares_[static_cast<std::size_t>(kMostChanged + 1 + j)]));
      driving_rate_.push_back(-given_[q]);
    }
  }
  for (int g = 0; g < tableau_.groups() && total_change != nullptr; ++g) {
    if (total_change[g] == 0.0) continue;
    driving_.push_back(tableau_.column_of_total(g));
    driving_rate_.push_back(total_change[g]);
  }
}

// The answer of x to β is about the diagonal of K where nothing else moves, that of β to x about
// its inverse.
double ParametricClosing::least_pivot(Index position, bool is_joining) const {
  const double scale = tableau_.run().largest_value_;
  const bool is_x_to_beta = (position >= tableau_.n_free()) == is_joining;
  return is_x_to_beta ? kPivot * scale : kPivot / scale;
}

bool ParametricClosing::join(Index position, double rate, double low, double high) {
  const std::size_t size = changed_.size();
  if (static_cast<Index>(size) > kMostChanged) return false;
  const double* column = tableau_.column(position, spares_[size]);
  right_.assign(size, 0.0);  // (T_DD)⁻¹ T_Dq
  left_.assign(size, 0.0);   // T_qD (T_DD)⁻¹
  for (std::size_t r = 0; r < size; ++r) {
    const double here = changed_[r].column[position];
    const double* row = inverse_.data() + r * size;
    double sum = 0.0;
    for (std::size_t k = 0; k < size; ++k) {
      sum += row[k] * column[changed_[k].position];
      left_[k] += here * row[k];
    }
    right_[r] = sum;
  }
  double pivot = column[position];
  for (std::size_t r = 0; r < size; ++r) pivot -= changed_[r].column[position] * right_[r];
  if (!(pivot > least_pivot(position, true))) return false;
  grown_.resize((size + 1) * (size + 1));
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t k = 0; k < size; ++k)
      grown_[r * (size + 1) + k] = inverse_[r * size + k] + right_[r] * left_[k] / pivot;
    grown_[r * (size + 1) + size] = -right_[r] / pivot;
    grown_[size * (size + 1) + r] = -left_[r] / pivot;
  }
  grown_[size * (size + 1) + size] = 1.0 / pivot;
  inverse_.swap(grown_);
  changed_.push_back({position, rate, low, high, column});
  return true;
}

bool ParametricClosing::drop(Index place) {
  const std::size_t size = changed_.size(), at = static_cast<std::size_t>(place);
  const double pivot = inverse_[at * size + at];
  if (!(pivot > least_pivot(changed_[at].position, false))) return false;
  grown_.resize((size - 1) * (size - 1));
  std::size_t out = 0;
  for (std::size_t r = 0; r < size; ++r) {
    if (r == at) continue;
    const double factor = inverse_[r * size + at] / pivot;
    for (std::size_t k = 0; k < size; ++k)
      if (k != at) grown_[out++] = inverse_[r * size + k] - factor * inverse_[at * size + k];
  }
  inverse_.swap(grown_);
  changed_.erase(changed_.begin() + place);
  std::rotate(spares_.begin() + place, spares_.begin() + place + 1,
              spares_.begin() + static_cast<std::ptrdiff_t>(size));
  return true;
}

void ParametricClosing::find_rates() {
  const std::size_t size = changed_.size();
  right_.resize(size);
  given_rate_.resize(size);
  for (std::size_t r = 0; r < size; ++r) {
    right_[r] = changed_[r].rate;
    for (std::size_t d = 0; d < driving_.size(); ++d)
      right_[r] -= driving_rate_[d] * driving_[d][changed_[r].position];
  }
  columns_ = driving_;
  coefs_ = driving_rate_;
  for (std::size_t r = 0; r < size; ++r) {
    double sum = 0.0;
    for (std::size_t k = 0; k < size; ++k) sum += inverse_[r * size + k] * right_[k];
    given_rate_[r] = sum;
    columns_.push_back(changed_[r].column);
    coefs_.push_back(sum);
  }
  std::fill(rate_.begin(), rate_.end(), 0.0);
  loops_.add_rows(rate_.data(), columns_.data(), coefs_.data(), static_cast<Index>(columns_.size()),
                  tableau_.length());
  for (const Changed& c : changed_) rate_[c.position] = c.rate;
}

ParametricClosing::Event ParametricClosing::next_event(double limit) const {
  const Index m = tableau_.n_free(), n = tableau_.size();
  double beta_scale = largest_magnitude(rate_.data(), m),
         x_scale = largest_magnitude(rate_.data() + m, n - m);
  double moved = sum_of(m, [&](Index q) { return std::fabs(rate_[q]); });
  for (std::size_t r = 0; r < changed_.size(); ++r) {
    const double size = std::fabs(given_rate_[r]);
    double& scale = changed_[r].position < m ? x_scale : beta_scale;
    scale = std::max(scale, size);
    if (changed_[r].position >= m) moved += size;
  }
  const double flat_beta = kFlat * beta_scale;
  const double flat_x = std::max(kFlat * x_scale, kNoise * tableau_.run().largest_value_ * moved);
  Event event;
  event.length = limit;
  const auto look = [&](double value, double rate, double flat, double low, double high, Index at,
                        bool is_changed) {
    if (!(std::fabs(rate) > flat)) return;
    const double length = std::max(0.0, rate > 0.0 ? high - value : value - low) / std::fabs(rate);
    if (!(length < event.length)) return;
    event.length = length;
    event.place = at;
    event.is_changed = is_changed;
    event.is_high = rate > 0.0;
  };
  const auto look_at_all = [&](Index first, Index last, double flat) {
    for (Index q = first; q < last; ++q) {
      const double there = following_[q] + event.length * rate_[q];
      if (there > high_[q] || there < low_[q])
        look(following_[q], rate_[q], flat, low_[q], high_[q], q, false);
    }
  };
  look_at_all(0, m, flat_beta);
  look_at_all(m, n, flat_x);
  for (std::size_t r = 0; r < changed_.size(); ++r) {
    const Changed& c = changed_[r];
    look(given_[c.position], given_rate_[r], c.position < m ? flat_x : flat_beta, c.low, c.high,
         static_cast<Index>(r), true);
  }
  return event;
}

void ParametricClosing::move(double length) {
  for (std::size_t q = 0; q < rate_.size(); ++q) following_[q] += length * rate_[q];
  for (std::size_t r = 0; r < changed_.size(); ++r)
    given_[changed_[r].position] += length * given_rate_[r];
}

// A variable that was bounded at the solution and one that was free there differ in which of x and
// β is v and which u; for either, meeting an end of β makes it bounded and of x free.
bool ParametricClosing::apply(const Event& event) {
  const ParametricRun& run = tableau_.run();
  const Index q = event.is_changed ? changed_[event.place].position : event.place;
  const Index i = tableau_.variable(q);
  const bool has_kink = run.has_kink(), is_beta = (q < tableau_.n_free()) != event.is_changed;
  double low, high;
  double& value = event.is_changed ? given_[q] : following_[q];
  if (event.is_changed)
    value = event.is_high ? changed_[event.place].high : changed_[event.place].low;
  else
    value = event.is_high ? high_[q] : low_[q];
  if (is_beta) {
    place_[i] = place_left(place_[i], event.is_high, has_kink, value);
    tableau_.ends_of_x(i, place_[i], &low, &high);
  } else {
    place_[i] =
        place_entered(place_[i], event.is_high ? -1 : 1, has_kink, run.lower_[i], run.upper_[i]);
    tableau_.ends_of_beta(i, place_[i], &low, &high);
  }
  if (!event.is_changed) {
    low_[q] = -kInf;
    high_[q] = kInf;
    return join(q, 0.0, low, high);
  }
  low_[q] = low;
  high_[q] = high;
  return drop(event.place);
}

// A group all of whose free variables are at ends has an interval of θ.
bool ParametricClosing::has_free_inside() const {
  const double margin = 10.0 * tableau_.run().beta_tolerance_;
  const auto is_inside = [&](double value, double low, double high) {
    return value - low > margin && high - value > margin;
  };
  for (int g = 0; g < tableau_.groups(); ++g) {
    bool is_found = false;
    for (Index q = 0; q < tableau_.n_free() && !is_found; ++q)  // the changed have no ends
      is_found = tableau_.group(q) == g && (low_[q] > -kInf || high_[q] < kInf) &&
                 is_inside(following_[q], low_[q], high_[q]);
    for (const Changed& c : changed_) {
      if (is_found) break;
      if (c.position >= tableau_.n_free() && tableau_.group(c.position) == g)
        is_found = is_inside(given_[c.position], c.low, c.high);
    }
    if (!is_found) return false;
  }
  return true;
}

// Whether all ends are kept, the totals are right, and v and u belong together: with the places of
// either that is the optimum.
bool ParametricClosing::is_optimal(const double* total_change) const {
  const ParametricRun& run = tableau_.run();
  const Index m = tableau_.n_free(), n = tableau_.size();
  const auto beyond = [&](Index q) {
    return std::max(low_[q] - following_[q], following_[q] - high_[q]);
  };
  if (largest_of(m, beyond) > kBeyond * run.beta_tolerance_) return false;
  if (largest_of(n - m, [&](Index k) { return beyond(m + k); }) > kBeyond * run.slack_tolerance_)
    return false;
  for (int g = 0; g < tableau_.groups(); ++g) {
    const double change = total_change == nullptr ? 0.0 : total_change[g];
    const double sum = sum_of(n, [&](Index q) {
      const double beta = (q < m ? following_ : given_)[q];
      return tableau_.groups() == 1 || tableau_.group(q) == g ? beta : 0.0;
    });
    const double total = run.problem_.total[g] + run.t_ * run.problem_.total_rate[g] + change;
    if (std::fabs(sum - total) > kBeyond * run.beta_tolerance_) return false;
  }
  return std::fabs(tableau_.mismatch(following_.data(), given_.data())) <= tableau_.tolerance();
}

bool ParametricClosing::close(const Index* items, Index count, const double* total_change) {
  start(items, count, total_change);
  if (!is_regular_) return false;
  double left = 1.0;
  for (Index zero_steps = 0; left > 0.0; ++steps_) {
    if (steps_ > kMostSteps || zero_steps > kMostZeroSteps) return false;
    find_rates();
    const Event event = next_event(left);
    move(event.length);
    left = event.place < 0 ? 0.0 : left - event.length;
    zero_steps = event.length > 0.0 ? 0 : zero_steps + 1;
    if (event.place >= 0 && !apply(event)) return false;
  }
  for (Index q : closed_) (q < tableau_.n_free() ? following_ : given_)[q] = 0.0;
  return has_free_inside() && is_optimal(total_change);
}

double ParametricClosing::output() const {
  const Index q = closed_[0], i = tableau_.variable(q);
  const double x = q < tableau_.n_free() ? given_[q] : following_[q];
  const double theta =
      tableau_.groups() > 0 ? following_[tableau_.size() + tableau_.group(q)] : 0.0;
  return x + theta - tableau_.run().linear_[i];
}

}  // namespace kfu

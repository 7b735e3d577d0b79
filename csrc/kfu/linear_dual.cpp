#include "kfu/linear_dual.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Index kAhead = 8;  // visits between asking for a row and reading it

// Mixes a counter into 64 even bits (the finaliser of SplitMix64; Steele, Lea and Flood, 2014).
std::uint64_t mixed(std::uint64_t counter) {
  std::uint64_t z = (counter + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// A number below `bound` (< 2³²) from 32 of those bits.
Index below(std::uint64_t bits, Index bound) {
  return static_cast<Index>(((bits >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
}

}  // namespace

LinearDual::LinearDual(const LinearRows& rows, const DualProblem& problem, std::vector<double> beta,
                       double penalty, bool shrinking)
    : rows_(rows),
      has_equality_(problem.has_equality),
      shrinking_(shrinking),
      variables_(static_cast<std::size_t>(problem.size())),
      last_{kInf, -kInf},
      w_(static_cast<std::size_t>(rows.n_features())) {
  const Index n = problem.size();
  std::vector<double> squares(static_cast<std::size_t>(n));
  rows.squares(squares.data());
  target_ = std::accumulate(beta.begin(), beta.end(), 0.0);
  if (has_equality_ && n > 0) {
    const double mean = std::accumulate(squares.begin(), squares.end(), 0.0) / n;
    rho_ = penalty * (mean > 0.0 ? mean : 1.0);
  }
  for (Index k = 0; k < n; ++k) {
    const double ridge = problem.ridge.empty() ? 0.0 : problem.ridge[k];
    Variable& v = variables_[k];
    v.beta = beta[k];
    v.linear = problem.linear[k];
    v.lower = problem.lower[k];
    v.upper = problem.upper[k];
    v.ridge = ridge;
    v.kink = problem.kink_of(k);
    v.diagonal = squares[k] + ridge + rho_;
    v.point = problem.points[k];
    if (problem.lower[k] < problem.upper[k]) order_.push_back(static_cast<std::int32_t>(k));
  }
  n_active_ = static_cast<Index>(order_.size());
  refresh();
}

// w and Σβ from scratch: rounding errors of steps do not pile up.
void LinearDual::refresh() {
  const std::vector<double> values = beta();
  rows_.add(nullptr, static_cast<Index>(values.size()), values.data(), w_.data());
  sum_ = std::accumulate(values.begin(), values.end(), 0.0);
}

void LinearDual::reset(const std::vector<double>& beta, double theta) {
  for (std::size_t k = 0; k < variables_.size(); ++k) variables_[k].beta = beta[k];
  theta_ = theta;
  unshrink();
}

void LinearDual::unshrink() {
  refresh();
  n_active_ = static_cast<Index>(order_.size());
  last_ = {kInf, -kInf};
}

std::vector<double> LinearDual::beta() const {
  std::vector<double> values(variables_.size());
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = variables_[k].beta;
  return values;
}

void LinearDual::permute() {
  const std::uint64_t stream = mixed(static_cast<std::uint64_t>(epoch_++));
  for (Index s = 0; s + 1 < n_active_; ++s) {
    const Index other = s + below(mixed(stream + static_cast<std::uint64_t>(s)), n_active_ - s);
    std::swap(order_[s], order_[other]);
  }
}

Epoch LinearDual::descend(Index most_steps) {
  permute();
  return with_reader(rows_.data(),
                     [&](const auto& reader) { return descend_with(reader, most_steps); });
}

// Where the objective, as a function of β_k alone with the smooth slope G at the present place, is
// least. A row of zeros without ridge makes it linear: it then ends on a bound, or on the kink.
double LinearDual::minimiser(const Variable& v, double G) {
  if (v.diagonal > 0.0) {
    double next = v.beta - G / v.diagonal;
    if (v.kink > 0.0)
      next = std::copysign(std::max(0.0, std::abs(next) - v.kink / v.diagonal), next);
    return std::min(std::max(next, v.lower), v.upper);
  }
  double end = v.beta;
  if (up_slope(G, v.beta, v.kink) < 0.0) end = piece_end_up(v.beta, v.upper, v.kink);
  if (low_slope(G, v.beta, v.kink) > 0.0) end = piece_end_down(v.beta, v.lower, v.kink);
  return std::isfinite(end) ? end : v.beta;
}

template <class Reader>
Epoch LinearDual::descend_with(const Reader& rows, Index most_steps) {
  Epoch epoch;
  Extremes seen{-kInf, kInf};
  double* w = w_.data();
  Index s = 0;
  while (s < n_active_ && epoch.steps < most_steps) {
    if (s + 2 * kAhead < n_active_) __builtin_prefetch(&variables_[order_[s + 2 * kAhead]]);
    if (s + kAhead < n_active_) rows.prefetch(variables_[order_[s + kAhead]].point);
    Variable& v = variables_[order_[s]];
    ++epoch.visits;
    const double tau = theta_ - rho_ * (sum_ - target_);
    const double G = rows.dot(v.point, w) + v.ridge * v.beta + v.linear - tau;
    const double up = v.beta < v.upper ? up_slope(G, v.beta, v.kink) : kInf;
    const double low = v.beta > v.lower ? low_slope(G, v.beta, v.kink) : -kInf;
    if (shrinking_ && up > last_.high && low < last_.low) {
      std::swap(order_[s], order_[--n_active_]);
      ++shrinks_;
      continue;
    }
    ++s;
    seen.high = std::max(seen.high, low);
    seen.low = std::min(seen.low, up);
    const double next = minimiser(v, G);
    const double change = next - v.beta;
    if (change == 0.0) continue;
    rows.add(v.point, change, w);
    sum_ += change;
    v.beta = next;
    ++epoch.steps;
  }
  epoch.finished = s >= n_active_;
  epoch.n_active = n_active_;
  if (has_equality_) theta_ -= rho_ * (sum_ - target_);
  if (has_equality_)
    epoch.gap = std::isfinite(seen.high - seen.low) ? std::max(0.0, seen.high - seen.low) : 0.0;
  else
    epoch.gap = std::max({0.0, seen.high, -seen.low});
  // What is set aside has to lie beyond every slope that still moves something.
  last_ = {seen.high > 0.0 ? seen.high : kInf, seen.low < 0.0 ? seen.low : -kInf};
  return epoch;
}

}  // namespace kfu

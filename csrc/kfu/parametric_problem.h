// The dual problem of dual.h with every constant linear in one number t.
//
//   minimise   ½ βᵀ(K + diag(ridge))β + linear(t)ᵀβ + kink(t)ᵀ|β|
//   subject to lower(t) ≤ β ≤ upper(t),  Σβ = total(t) over each group (or no equality)
//
// with v(t) = v + t·v_rate for each of them. On a stretch of t on which no variable changes its
// state (at a bound, at its kink, free), β, the gradient F = (K + ridge)β + linear and the
// multipliers θ are linear in t; the solution is a piecewise linear path. Regularisation paths of
// the C-SVC (linear = −λy), of regression in λ or ε (the kink moves), of the ν machines (the totals
// move) and leaving a row out (one bound closes) are such problems.
#pragma once

#include <vector>

#include "kfu/dual.h"

namespace kfu {

/// A vector that moves with t. Empty rates: it stays.
struct Moving {
  std::vector<double> value;
  std::vector<double> rate;

  bool moves() const { return !rate.empty(); }
  double at(Index k, double t) const { return moves() ? value[k] + t * rate[k] : value[k]; }
  double rate_of(Index k) const { return moves() ? rate[k] : 0.0; }
};

struct ParametricProblem {
  Moving linear;
  Moving lower;
  Moving upper;
  Moving kink;                ///< empty value: none
  std::vector<double> ridge;  ///< empty: none
  std::vector<char> group;    ///< 0 or 1; empty: all 0
  bool has_equality = true;
  double total[kMostGroups] = {0.0, 0.0};
  double total_rate[kMostGroups] = {0.0, 0.0};
  std::vector<Index> points;  ///< row of the data behind each variable

  Index size() const { return static_cast<Index>(linear.value.size()); }
  bool has_kink() const { return !kink.value.empty(); }
  int group_of(Index k) const { return group.empty() ? 0 : group[k]; }
  int n_groups() const { return group.empty() ? 1 : 2; }
};

/// Where a variable is. `free` is between its bounds, and at or above zero if it has a kink;
/// `free_below` is between its lower bound and its kink.
enum class Place : signed char { lower, upper, kink, free, free_below };

inline bool is_free(Place p) { return p == Place::free || p == Place::free_below; }

/// Where a bounded variable is once it is free, having left `from` upwards (sign > 0) or downwards.
inline Place place_entered(Place from, int sign, bool has_kink, double lower, double upper) {
  if (from == Place::kink) return sign > 0 ? Place::free : Place::free_below;
  const bool is_below = from == Place::lower ? lower < 0.0 : upper <= 0.0;
  return has_kink && is_below ? Place::free_below : Place::free;
}

/// Where a free variable is once it has met the high or the low end of its piece.
inline Place place_left(Place from, bool high, bool has_kink, double end) {
  const bool is_kink = has_kink && (from == Place::free_below ? high : !high) && end == 0.0;
  return is_kink ? Place::kink : (high ? Place::upper : Place::lower);
}

}  // namespace kfu

// The one problem every machine is reduced to, in signed form.
//
//   minimise   ½ βᵀ(K + diag(ridge)) β + linearᵀ β + kinkᵀ|β|
//   subject to lower ≤ β ≤ upper, and Σβ = Σβ⁰ when has_equality, over each group on its own
//
// β = s∘α carries the labels of the textbook form (min ½αᵀQα + pᵀα, Q = SKS, sᵀα const):
// linear = s∘p, and a variable with s = −1 has its box mirrored. For the C-SVC, linear = −y and the
// box of β is [0, C] for y = 1 and [−C, 0] for y = −1. Labels appear nowhere below this line, which
// is what lets every consumer of K share it.
//
// Gradient F = (K + diag(ridge))β + linear. Optimality: a multiplier θ (the negative bias) with
//   F ≥ θ where β = lower,   F ≤ θ where β = upper,   F = θ in between;
// equivalently  gap = max{F : β > lower} − min{F : β < upper} ≤ 0.  Without equality θ = 0.
//
// The kink is the ε of regression: one variable in [−C, C] for each point, instead of the
// textbook's two of which one is always zero. It makes the slope of the objective differ on the two
// sides of β = 0: upwards F + kink from β ≥ 0 and F − kink below, downwards F + kink above 0 and F
// − kink from β ≤ 0. In the conditions above, F stands for the slope in the direction in question;
// F itself never holds the kink. A variable with a kink has lower ≤ 0 ≤ upper.
//
// Groups are the two equalities of the ν machines: a pair moves within one group, each group has
// its own θ, and the gap is the larger of theirs. (ν-SVC: θ = ρ − b for y = 1 and −ρ − b for y =
// −1.)
#pragma once

#include <vector>

#include "kfu/types.h"

namespace kfu {

struct DualProblem {
  std::vector<double> linear;
  std::vector<double> lower;
  std::vector<double> upper;
  std::vector<double> ridge;  ///< empty: none
  std::vector<double> kink;   ///< empty: none
  std::vector<char> group;    ///< 0 or 1; empty: all 0. Only with has_equality
  std::vector<Index> points;  ///< row of the data set behind each variable
  bool has_equality = true;

  Index size() const { return static_cast<Index>(linear.size()); }
  double kink_of(Index k) const { return kink.empty() ? 0.0 : kink[k]; }
  int group_of(Index k) const { return group.empty() ? 0 : group[k]; }
  int n_groups() const { return group.empty() ? 1 : 2; }
};

constexpr int kMostGroups = 2;

/// The slope of the objective when β increases, for a gradient F.
inline double up_slope(double F, double beta, double kink) {
  return beta < 0.0 ? F - kink : F + kink;
}

/// The slope when β decreases.
inline double low_slope(double F, double beta, double kink) {
  return beta > 0.0 ? F + kink : F - kink;
}

/// Where the smooth piece ends that an increase of β moves on.
inline double piece_end_up(double beta, double upper, double kink) {
  return kink > 0.0 && beta < 0.0 ? 0.0 : upper;
}

inline double piece_end_down(double beta, double lower, double kink) {
  return kink > 0.0 && beta > 0.0 ? 0.0 : lower;
}

/// Whether β is neither on a bound nor on its kink, so that F determines θ.
inline bool is_unbounded(double beta, double lower, double upper, double kink) {
  return beta > lower && beta < upper && (kink == 0.0 || beta != 0.0);
}

}  // namespace kfu

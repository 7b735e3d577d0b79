// The one problem every machine is reduced to, in signed form.
//
//   minimise   ½ βᵀ(K + diag(ridge)) β + linearᵀ β
//   subject to lower ≤ β ≤ upper, and Σβ = Σβ⁰ when has_equality
//
// β = s∘α carries the labels of the textbook form (min ½αᵀQα + pᵀα, Q = SKS, sᵀα const):
// linear = s∘p, and a variable with s = −1 has its box mirrored. For the C-SVC, linear = −y and the
// box of β is [0, C] for y = 1 and [−C, 0] for y = −1. Labels appear nowhere below this line, which
// is what lets every consumer of K share it.
//
// Gradient F = (K + diag(ridge))β + linear. Optimality: a multiplier θ (the negative bias) with
//   F ≥ θ where β = lower,   F ≤ θ where β = upper,   F = θ in between;
// equivalently  gap = max{F : β > lower} − min{F : β < upper} ≤ 0.  Without equality θ = 0.
#pragma once

#include <vector>

#include "kfu/types.h"

namespace kfu {

struct DualProblem {
  std::vector<double> linear;
  std::vector<double> lower;
  std::vector<double> upper;
  std::vector<double> ridge;  ///< empty: none
  std::vector<Index> points;  ///< row of the data set behind each variable
  bool has_equality = true;

  Index size() const { return static_cast<Index>(linear.size()); }
};

}  // namespace kfu

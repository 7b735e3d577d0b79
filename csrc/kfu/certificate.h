// The proof that travels with every solution, from float64 values of K, from scratch.
//
// With F the gradient of dual.h and θ = −bias:
//   kkt_gap        max{F : β > lower} − min{F : β < upper}    (what the tolerance bounds)
//   kkt_violation  the worst violation of the conditions on F − θ
//   objective      −½βᵀ(K + ridge)β − linearᵀβ − kinkᵀ|β| = −½ Σ β(F + linear) − Σ kink|β|
//                  (the maximised dual)
//   duality_gap    Σ φ(β) − min{φ(b) : lower ≤ b ≤ upper} = primal − dual ≥ 0, the separable part
//   of
//                  each variable at fixed Kβ: φ(b) = ½ ridge b² + (F − ridge β − θ) b + kink|b|
// F is the slope in the direction in question where there is a kink. bias: minus the mean of that
// over the unbounded variables (with its standard deviation), or, when there is none, minus the
// middle of the interval that the bounded ones leave. With two groups each has its θ; the bias is
// minus their mean, the margin half of θ₀ − θ₁.
#pragma once

#include <vector>

#include "kfu/dual.h"

namespace kfu {

struct Certificate {
  double objective = 0;
  double duality_gap = 0;
  double kkt_gap = 0;
  double kkt_violation = 0;
  double bias = 0;
  double bias_std = 0;
  double bias_low = 0;  ///< ends of the interval of biases when there is no unbounded variable
  double bias_high = 0;
  double margin = 0;  ///< ρ of the ν machines; 0 with one group
  Index n_sv = 0;
  Index n_usv = 0;
};

Certificate certify(const DualProblem& problem, const std::vector<double>& beta,
                    const std::vector<double>& F);

}  // namespace kfu

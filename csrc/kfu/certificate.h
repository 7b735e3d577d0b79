// The proof that travels with every solution, from float64 values of K, from scratch.
//
// With F the gradient of dual.h and θ = −bias:
//   kkt_gap        max{F : β > lower} − min{F : β < upper}    (what the tolerance bounds)
//   kkt_violation  the worst violation of the conditions on F − θ
//   objective      −½βᵀ(K + ridge)β − linearᵀβ = −½ Σ β(F + linear)      (the maximised dual)
//   duality_gap    Σ max{(β − lower)(F − θ), (β − upper)(F − θ)}  = primal − dual ≥ 0
// bias: minus the mean of F over the unbounded variables (with its standard deviation), or, when
// there is none, minus the middle of the interval that the bounded ones leave.
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
  Index n_sv = 0;
  Index n_usv = 0;
};

Certificate certify(const DualProblem& problem, const std::vector<double>& beta,
                    const std::vector<double>& F);

}  // namespace kfu

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
#include "kfu/gram.h"
#include "kfu/linear_map.h"

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

/// F = (K + ridge)β + linear for every variable, by rows of K. Returns the number of kernel values.
Index gradient_from_scratch(const DualProblem& problem, const std::vector<double>& beta,
                            const Gram<double>& gram, std::vector<double>& F_out);

/// The same for the linear kernel, through w.
void gradient_from_scratch(const DualProblem& problem, const std::vector<double>& beta,
                           const DataView& data, int threads, std::vector<double>& F_out);

Certificate certify(const DualProblem& problem, const std::vector<double>& beta,
                    const std::vector<double>& F);

}  // namespace kfu

// The gradient of dual.h from float64 values of K, from scratch: what certificates are made of.
//
// F = (K + ridge)β + linear at every variable costs n_sv · n kernel values. Two facts make it
// cheaper without making it less true:
//   symmetry     among the support vectors each K(i, j) serves F_i and F_j;
//   irrelevance  a bounded variable that is satisfied contributes nothing to the gap, to the worst
//                violation, to the duality gap or to the bias. An approximate F with a proven error
//                bound shows which variables are satisfied for certain; those keep their
//                approximate value. (The objective does depend on F at the support: where the
//                support is large it is as accurate as the approximate values, about 1e-6 of
//                it.)
// The order of summation is fixed by the problem alone, so threads do not change a bit.
#pragma once

#include <functional>
#include <vector>

#include "kfu/dual.h"
#include "kfu/gram.h"

namespace kfu {

/// An F to start from: |values − F| ≤ errors, variable by variable.
struct ApproximateGradient {
  std::vector<double> values;
  std::vector<double> errors;
  /// What they are by their root mean square where rows are coarse: what the objective may be off
  /// by is estimated from it, as that is far less than the errors would allow for.
  double usual_error = 0.0;
  /// Lowers the errors of some variables at the price of their float32 values, or is empty.
  std::function<void(const std::vector<Index>& variables, std::vector<double>& errors)> tighten;
};

/// Lowers errors[k] of the given variables to the bound on |(K₃₂ − K)β| at k that weighs the error
/// of each value by the value itself (sum_error in gram.h), where that is smaller. `rounding` is
/// what the maintained sums themselves may be off, by variable.
void tighten_errors(const DualProblem& problem, const std::vector<double>& beta,
                    const Gram<float>& gram, const ValueError& value_error,
                    const std::vector<double>& rounding, const std::vector<Index>& variables,
                    std::vector<double>& errors);

/// F by rows of K. With `approximate` (may be null), variables proven irrelevant keep their
/// approximate value, and its errors become those of F_out. Returns the number of kernel values
/// computed.
Index exact_gradient(const DualProblem& problem, const std::vector<double>& beta,
                     const Gram<double>& gram, int threads, ApproximateGradient* approximate,
                     std::vector<double>& F_out);

/// F for the linear kernel, through w.
void exact_linear_gradient(const DualProblem& problem, const std::vector<double>& beta,
                           const DataView& data, int threads, std::vector<double>& F_out);

}  // namespace kfu

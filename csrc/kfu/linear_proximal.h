// The elementwise part of the proximal Newton method (kfu/solvers/linear_newton.py), fused.
//
// With scores s (linear_newton.py) the proximal subproblem around a centre gives
//     β(s) = clip(soft(centre − weight·s), lower, upper),
// soft() the soft threshold weight·kink (0 without a kink), and along s + t·ds the slope of its
// dual function needs Σ (β − centre) ds and, for its own slope, Σ weight ds² over the variables
// inside: on no bound and not on their kink. Sums run over fixed blocks.
#pragma once

#include "kfu/types.h"

namespace kfu {

struct ProximalArrays {
  Index n;
  const double* centre;
  const double* weight;
  const double* lower;
  const double* upper;
  const double* kink;  ///< may be null
  const double* score;
};

/// Writes β(s), and the inside variables to `inside` (room for n); returns their number.
Index proximal_point(const ProximalArrays& arrays, double* beta, Index* inside);

struct ProximalSlope {
  double first;   ///< Σ (β(s + t·ds) − centre) ds
  double second;  ///< Σ weight ds² over the inside variables
};

ProximalSlope proximal_slope(const ProximalArrays& arrays, const double* direction, double t,
                             int threads);

}  // namespace kfu

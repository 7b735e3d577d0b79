// Single-variable steps on the pairs among the points of a block of K.
//
// A step minimises the objective along α_p exactly: α_p ← clip(α_p − F_p / η_p, 0, C_p) with the
// curvature η_p = K_uu + K_vv − 2K_uv (floored: equal points have none, and their pair goes to its
// bound), and then g ← g + δ·(K_u − K_v) over the points of the block. Reading F of a pair costs
// two values of g, a step costs the whole block, so the pairs are swept and only those that violate
// by at least half of the worst are moved: nearly greedy, at the price of a cyclic order. Sweeps go
// over the pairs that may still matter (shrinking); the others are looked at again before the end.
// Where ten sweeps are not enough, a step on all free pairs at once follows (rank_newton.h).
#pragma once

#include <cstdint>
#include <vector>

#include "kfu/smo_loops.h"
#include "kfu/square_tier.h"
#include "kfu/types.h"

namespace kfu {

/// A pair of the subproblem; u and v are slots of the block.
struct LocalPair {
  std::int32_t u, v;
  Index pair;  ///< in the whole problem
  double alpha, upper, target, curvature;
};

struct StepsResult {
  Index steps = 0;
  double violation = 0;  ///< the worst when it was last looked for
};

/// Sets the curvatures. Requires: the rows of the slots in use are complete.
template <class T>
void set_curvatures(const SquareTier<T>& block, std::vector<LocalPair>& pairs);

/// Steps until no pair violates by more than `goal`, or `most` steps were made. g has
/// padded(block.size()) entries and is kept up to date.
template <class T>
StepsResult solve_pairs(const SquareTier<T>& block, const SmoLoops<T, double>& loops, double goal,
                        Index most, std::vector<LocalPair>& pairs, std::vector<double>& g);

}  // namespace kfu

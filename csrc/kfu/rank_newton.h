// A step on all pairs inside their box at once, where single-variable steps creep (large costs,
// many pairs on the margin): with A the free pairs,
//
//     G_AA d ≈ −F_A   by conjugate gradients,     α ← clip(α + t d),   t = 1, ¼, 1/16, ...,
//
// t being the first that decreases the objective enough. The iterations end when they no longer
// pay, so that early on, when bounds are still being found, a step is cheap and puts many pairs on
// them, and at the end it solves the face (Moré & Toraldo, 1991). G_AA is applied as
// P_A (K (P_Aᵀ z)) on the points that A touches, and preconditioned by its diagonal.
#pragma once

#include <vector>

#include "kfu/rank_steps.h"

namespace kfu {

/// `budget` bounds the values of K read, `goal` is the violation worth reaching; g has
/// padded(block.size()) entries and is kept up to date. Returns the number of iterations of the
/// conjugate gradients, 0 if the budget is too small for a step.
template <class T>
Index newton_step(const SquareTier<T>& block, const SmoLoops<T, double>& loops, double goal,
                  double budget, std::vector<LocalPair>& pairs, std::vector<double>& g);

}  // namespace kfu

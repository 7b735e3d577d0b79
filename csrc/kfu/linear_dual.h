// Dual coordinate descent for the plain linear kernel (Hsieh et al., ICML 2008).
//
// With w = Σ β_k x_k at hand, the gradient F_k = x_k·w + ridge_k β_k + linear_k of dual.h costs one
// row, and so does the minimisation over β_k alone:  β_k ← clip(β_k − (F_k − τ)/q_k), by way of
// the soft threshold kink_k/q_k where there is a kink.
//
// One variable cannot move under Σβ = c. The method of multipliers (Hestenes, Powell 1969) replaces
// the constraint by −θ(Σβ − c) + ½ρ(Σβ − c)², the same as a constant feature √ρ whose target moves:
// τ = θ − ρ(Σβ − c), q_k = ‖x_k‖² + ridge_k + ρ, and θ ← τ after every epoch. Without equality
// τ = 0 and ρ = 0.
//
// Variables at a bound that the last epoch's extremes leave behind are set aside (shrinking) until
// the others are done; the caller judges the result with a gradient from scratch.
//
// The order of an epoch is a permutation drawn from (epoch, place) by a counter-based generator: no
// state, no seed, the same on every machine.
#pragma once

#include <vector>

#include "kfu/dual.h"
#include "kfu/linear_rows.h"

namespace kfu {

/// What one epoch saw and did. `gap` is max − min of F over the variables visited that could move
/// down or up (dual.h), each at its visit; without equality the largest projected gradient.
struct Epoch {
  double gap = 0;
  Index steps = 0;   ///< variables that moved
  Index visits = 0;  ///< rows read
  Index n_active = 0;
  bool finished = false;  ///< the whole epoch was done within the steps allowed
};

class LinearDual {
 public:
  /// `beta` lies in the box. `penalty` is ρ as a multiple of the mean ‖x‖².
  LinearDual(const LinearRows& rows, const DualProblem& problem, std::vector<double> beta,
             double penalty, bool shrinking);

  /// One pass over the active variables, at most `most_steps` steps.
  Epoch descend(Index most_steps);
  /// All variables take part again.
  void unshrink();
  /// Starts again from `beta` and the multiplier `theta`.
  void reset(const std::vector<double>& beta, double theta);

  std::vector<double> beta() const;
  double theta() const { return theta_; }
  double imbalance() const { return sum_ - target_; }  ///< Σβ − c
  Index shrinks() const { return shrinks_; }

 private:
  // What a step needs of a variable, on one cache line.
  struct alignas(64) Variable {
    double beta, linear, lower, upper, ridge, kink;
    double diagonal;
    Index point;
  };
  // Slopes seen by an epoch: the largest of those that may decrease, the least that may increase.
  struct Extremes {
    double high, low;
  };

  template <class Reader>
  Epoch descend_with(const Reader& rows, Index most_steps);
  static double minimiser(const Variable& v, double G);
  void permute();
  void refresh();

  const LinearRows& rows_;
  const bool has_equality_;
  const bool shrinking_;
  double rho_ = 0.0;
  double theta_ = 0.0;
  double sum_ = 0.0;
  double target_ = 0.0;
  std::vector<Variable> variables_;
  std::vector<std::int32_t> order_;  ///< movable variables, the active ones first
  Index n_active_ = 0;
  Index epoch_ = 0;
  Index shrinks_ = 0;
  Extremes last_;
  std::vector<double> w_;
};

}  // namespace kfu

// The dual of the ranking machine: one variable for each ordered pair of points.
//
//     min  ½ αᵀGα − tᵀα    s.t.  0 ≤ α_p ≤ C_p,     G = P K Pᵀ,   γ = Pᵀα,
//
// where row p of P is +1 at the preferred point u(p), −1 at the other point v(p), and t_p is the
// margin asked of the pair (1 unless told otherwise). There is no bias and no equality: a constant
// added to f(x) = Σ_i γ_i K(x_i, x) changes no difference. G (pairs × pairs) is never formed: with
// g = Kγ = f at the points, the gradient is
//
//     F_p = g_u − g_v − t_p,
//
// and a step of α_p moves γ_u and γ_v by as much, in opposite directions.
//
// Herbrich, Graepel & Obermayer (2000); Joachims (2002); Zapién (2009), section 1.5.2.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kfu/types.h"

namespace kfu {

struct RankProblem {
  std::vector<Index> points;            ///< rows of the data that occur in a pair
  std::vector<std::int32_t> preferred;  ///< by pair: position in `points`
  std::vector<std::int32_t> other;      ///< by pair: position in `points`, not that of `preferred`
  std::vector<double> upper;            ///< by pair, ≥ 0
  std::vector<double> target;           ///< by pair; empty: 1 for all

  Index n_pairs() const { return static_cast<Index>(upper.size()); }
  Index n_points() const { return static_cast<Index>(points.size()); }
  double target_of(Index p) const { return target.empty() ? 1.0 : target[p]; }
};

/// What the rounds move. gamma and g are by position in RankProblem::points.
struct RankState {
  std::vector<double> alpha, gamma, g;
};

/// How far a variable is from its optimality condition: the modulus of the projected gradient.
inline double rank_violation(double F, double alpha, double upper) {
  if (F < 0.0) return alpha < upper ? -F : 0.0;
  return alpha > 0.0 ? F : 0.0;
}

/// The proof that travels with a solution. With g from float64 values of K:
///   objective    Σ t α − ½ γᵀg              (the maximised dual)
///   kkt_gap      max_p rank_violation       (what the tolerance bounds)
///   duality_gap  Σ_p α F⁺ + (C − α) F⁻  = primal − dual ≥ 0
struct RankCertificate {
  double objective = 0;
  double duality_gap = 0;
  double kkt_gap = 0;
  Index n_sv = 0;   ///< points with γ ≠ 0
  Index n_usv = 0;  ///< pairs with 0 < α < C
};

/// γ = Pᵀα from scratch. What cancels to rounding is 0: such a point does not matter to f.
std::vector<double> rank_coefficients(const RankProblem& problem, const std::vector<double>& alpha);

/// The certificate of a state whose gamma and g belong to its alpha. Sums do not depend on threads.
RankCertificate certify_rank(const RankProblem& problem, const RankState& state, int threads);

}  // namespace kfu

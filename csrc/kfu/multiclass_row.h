// One example of a single-machine multiclass SVM: its K dual variables, all others held still.
//
// K functions f_k are found together. With y the class of an example, c its cost and m the margin,
// the losses are
//
//   Crammer–Singer (m = 1)   c · max_k (f_k + m[k≠y] − f_y)
//   Weston–Watkins (m = 2)   c · Σ_{k≠y} max(0, f_k + m − f_y)
//
// added over the examples to ½Σ_k‖f_k‖². Multipliers α_k ≥ 0 of f_y − f_k ≥ m − ξ give f_k =
// Σ_i B_ik K(x_i, ·) with B_ik = −α_ik for k ≠ y_i and B_{i,y_i} = Σ_k α_ik, and the dual is, for
// both,
//
//   min D(B) = ½ Σ_k B_kᵀ K B_k − m Σ_i B_{i,y_i},   G_ik = ∂D/∂B_ik = f_k(x_i) − m[k = y_i]
//
// where only the set of a row B_i differs; every row sums to zero, and
//
//   Crammer–Singer   B_k ≤ U_k, U_k = c[k = y]      (α ≥ 0, Σα ≤ c)
//   Weston–Watkins   0 ≤ −B_k ≤ c for k ≠ y         (0 ≤ α ≤ c)
//
// Moving row i alone by d changes D by G_i·d + ½κ‖d‖², κ = K(x_i, x_i): its optimum is the
// projection of B_i − G_i/κ on the row's set.
//
//   Crammer–Singer: new B_k = min(U_k, B_k + (g − G_k)/κ), g such that the row sums to zero. Start
//   with g = the mean of G and none at its bound; put at their bound those that g takes there, and
//   solve for g again: g only grows, so at most K passes give it exactly (K. Crammer, Y. Singer,
//   JMLR 2 (2001), find it by sorting).
//
//   Weston–Watkins: with g_k = ∂D/∂α_k = G_y − G_k and T = κ·(change of Σα), κ·(change of α_k) =
//   clip(−g_k − T, −κα_k, κ(c − α_k)), and T is the sum of these over k. The right-hand side falls
//   with T and is linear between 2(K − 1) breakpoints, which are sorted and walked through.
//
// The face that a row is on: all directions that sum to zero over the classes with B_k < U_k
// (Crammer–Singer), or over the class y and those with 0 < α_k < c (Weston–Watkins). A row whose
// face has no direction is at a corner of its set.
//
// KKT. Crammer–Singer: G_k = max G wherever B_k < U_k; the violation is max G − min over B_k < U_k
// of G_k. Weston–Watkins: g_k ≥ 0 where α_k < c and ≤ 0 where α_k > 0; the violation is the largest
// excess. Both are in the unit of f, and there is nothing else: a row has no bias to choose.
//
// Duality gap (primal − dual) of a row, both terms of each product ≥ 0:
//   Crammer–Singer   Σ_k (U_k − B_k)(max G − G_k)
//   Weston–Watkins   Σ_{k≠y} (g_k > 0 ? α_k g_k : (α_k − c) g_k)
#pragma once

#include <vector>

#include "kfu/types.h"

namespace kfu {

enum class MulticlassKind { crammer_singer, weston_watkins };

/// f_y − f_k is asked to be at least this.
inline double margin_of(MulticlassKind kind) {
  return kind == MulticlassKind::crammer_singer ? 1.0 : 2.0;
}

/// An example: its class, its cost, its row of B and its row of G (n_classes values each).
struct MulticlassRow {
  Index label;
  double cost;
  const double* B;
  const double* G;
};

class RowProblem {
 public:
  RowProblem(MulticlassKind kind, Index n_classes);

  /// How far the KKT conditions of the row are from being met.
  double violation(const MulticlassRow& row) const;
  /// Its part of primal − dual.
  double duality_gap(const MulticlassRow& row) const;
  /// Marks the classes of the row's face: it may move either way along every direction that sums to
  /// zero over them. Returns their number, 0 at a corner.
  Index face(const MulticlassRow& row, char* is_in_face) const;
  /// Whether the row is not at a corner of its set, so that it may move either way.
  bool is_free(const MulticlassRow& row) const;
  /// The best row with all others held still, for curvature κ > 0. B_out may be row.B.
  void solve(const MulticlassRow& row, double curvature, double* B_out);

 private:
  void solve_crammer_singer(const MulticlassRow& row, double curvature, double* B_out);
  void solve_weston_watkins(const MulticlassRow& row, double curvature, double* B_out);

  struct Breakpoint {
    double at;
    double jump;  // of the constant of the linear piece
    int free;     // change of the number of variables off their bounds
  };

  MulticlassKind kind_;
  Index n_classes_;
  std::vector<char> is_capped_;
  std::vector<Breakpoint> breakpoints_;
};

}  // namespace kfu

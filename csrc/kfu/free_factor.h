// The Cholesky factor of the kernel matrix of the free variables, kept while variables come and go.
//
// The system of a step is bordered by the equality. Instead of the border the factor holds
//
//   M = K_FF + diag(ridge) + c·E Eᵀ        (E: a column of ones for each group, c > 0)
//
// which has the same solutions under EᵀΔβ = given, and which for a positive semidefinite K is
// positive definite exactly where the bordered system is regular: vᵀMv = 0 means Kv = 0 and Eᵀv =
// 0. So a failing pivot is a direction v in which neither the gradient nor the equality changes.
//
// Beside L it holds z = L⁻¹r for a right-hand side with one entry per variable and a = L⁻¹E, which
// follow insertions and removals for the price of the change; a step then costs one back
// substitution.
#pragma once

#include <vector>

#include "kfu/buffer.h"
#include "kfu/dual.h"
#include "kfu/lapack.h"

namespace kfu {

class FreeFactor {
 public:
  FreeFactor(const Lapack& lapack, int n_groups);
  FreeFactor(const FreeFactor& other);

  Index size() const { return size_; }

  /// Prepares the insertion of a variable: `column` is its column of M (entries for the variables
  /// inside, in their order) and `diagonal` its own entry. Returns the pivot d − ‖L⁻¹column‖²,
  /// which is ≤ 0 up to rounding when the variable depends on those inside.
  double try_insert(const double* column, double diagonal);
  /// Inserts what try_insert prepared, with its right-hand side, into group g (−1: no equality).
  void insert(double pivot, double right, int group);
  /// M⁻¹column of the prepared variable: what the others would do if it moved by −1.
  void dependence(double* out);
  void remove(Index place);
  /// The factor of M, whose lower triangle is given column by column for the variables inside,
  /// computed afresh. False, and nothing changes, where M is not positive definite.
  bool rebuild(Buffer<double>& M, const double* right, const int* groups);
  /// Insertions and removals since the beginning or the last rebuild().
  Index changes() const { return changes_; }

  /// New right-hand sides for the same variables.
  void set_right(const double* right);

  /// x = M⁻¹(r + Σ_g μ_g E_g).
  void solve(const double* mu, double* x);
  /// x = M⁻¹ r in place, for another right-hand side.
  void solve_plain(double* x);

  // For many right-hand sides at once; several threads may call these.

  /// L⁻¹E of a group.
  const double* border(int g) const { return a_[g].data(); }
  /// out = L⁻¹ e_place, where `out` is zero.
  void unit_column(Index place, double* out) const;
  /// B ← B L⁻ᵀ, for a column-major B of so many rows.
  void solve_rows(double* B, Index rows, Index ld) const;
  /// Y ← L⁻ᵀ Y, for a column-major Y of so many columns.
  void solve_columns(double* Y, Index columns, Index ld) const;
  const Lapack& lapack() const { return lapack_; }

  double aa(int g, int h) const;
  double az(int g) const;

 private:
  double* column(Index k) { return L_.data() + k * ld_; }
  void grow();

  Lapack lapack_;
  int n_groups_;
  Index size_ = 0;
  Index ld_ = 0;
  Index changes_ = 0;
  Buffer<double> L_;
  std::vector<double> prepared_;
  std::vector<double> z_;
  std::vector<double> a_[kMostGroups];
};

}  // namespace kfu

// How a solution answers to each of its variables, shared by all rows that are left out of it.
//
// Let A be the free variables of an optimum and x_i = F_i − θ (of its group). A bounded variable
// has its β given, and x follows; a free one has its x given (it stays at its piece of the kink, or
// zero), and β follows. What follows, v = (β of A, x of the others, θ), is an affine function of
// what is given, u = (x of A, β of the others, the totals), with the matrix T, the kernel matrix
// swept on A. Its column j has
//
//   K_AA b − E θ' = −K_Aj,  Eᵀb = −e_g(j)     j is bounded: its β grows by one
//   K_AA b − E θ' = e_j,    Eᵀb = 0           j is free: its x grows by one
//   K_AA b − E θ' = 0,      Eᵀb = e_g         the total of a group grows by one
//   x'_i = K_iA b − θ'_g(i)  (+ K_ij where j is bounded)
//
// With the factor LLᵀ of K_AA + cEEᵀ (free_factor.h) and R = K_·A L⁻ᵀ, of the bounded rows, b =
// L⁻ᵀy and K_·A b = Ry: many columns are one product of matrices. A row that is left out meets a
// few changes of state D on its way; its direction between them is a combination of the columns of
// D and its own (parametric_closing.h), which costs |D|·n where a factor of its own would cost
// |A|·n + |A|².
//
// Columns are made in panels, or one by one when first asked for, and kept within a budget; beyond
// it they are made again each time. A column made alone is the same whoever asks, so results do not
// depend on threads.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "kfu/buffer.h"
#include "kfu/free_factor.h"
#include "kfu/parametric_run.h"

namespace kfu {

class ParametricTableau {
 public:
  /// `run` is exact, and stays as it is while this exists. R, which is always kept, and columns
  /// take so many bytes together.
  ParametricTableau(const ParametricRun& run, double bytes);

  /// Whether θ of every group is determined by free variables; otherwise there is no T.
  bool is_there() const { return is_there_; }

  // Preparation, in this order; the parts of either step may be done by several threads.

  Index n_bounded() const { return n_ - m_; }
  /// R for the bounded variables [first, last), counted among the bounded.
  void project(Index first, Index last);
  /// The columns of the totals.
  void make_totals();
  /// The columns of variables[first..last), one panel of a list, if the budget holds the list so
  /// far.
  void make_columns(const Index* variables, Index first, Index last);

  // What follows and what is given, by position: the free variables, the others, θ by group.

  Index size() const { return n_; }
  Index n_free() const { return m_; }
  Index length() const { return n_ + groups_; }
  int groups() const { return groups_; }
  Index position(Index variable) const { return position_[variable]; }
  Index variable(Index position) const { return order_[position]; }
  int group(Index position) const { return run_.group(order_[position]); }
  /// Values v and u at the solution, and the ends between which v may move while places stay.
  const std::vector<double>& following() const { return following_; }
  const std::vector<double>& given() const { return given_; }
  const std::vector<double>& low() const { return low_; }
  const std::vector<double>& high() const { return high_; }

  /// A column, length() long; `spare` holds it where the budget does not.
  const double* column(Index position, Buffer<double>& spare) const;
  const double* column_of_total(int g) const { return totals_.data() + g * length(); }

  /// Σ w_i (x_i − (Kβ + linear)_i + θ): zero up to rounding for fixed weights w and any v and u
  /// that belong together. An error anywhere in T shows in it, at the price of two products of
  /// vectors.
  double mismatch(const double* following, const double* given) const;
  /// What `mismatch` may be: far below what matters in an output, above rounding.
  double tolerance() const { return tolerance_; }

  const ParametricRun& run() const { return run_; }
  /// Ends of x of a bounded variable in that place, and of β of a free one.
  void ends_of_x(Index variable, Place place, double* low, double* high) const;
  void ends_of_beta(Index variable, Place place, double* low, double* high) const;

 private:
  void set_order();
  void set_weights();
  void fill_columns(const Index* positions, Index count, double* out) const;
  void begin_column(Index position, double* column) const;
  void finish_columns(double* columns, Index count) const;
  void multipliers(const double* right, double* mu) const;

  const ParametricRun& run_;
  const FreeFactor& factor_;
  Index n_, m_;
  int groups_;
  bool is_there_ = true;
  double grams_[3] = {0.0, 0.0, 0.0};  // EᵀM⁻¹E: entries (0,0), (0,1), (1,1)

  std::vector<Index> order_, position_;
  std::vector<double> following_, given_, low_, high_;
  Buffer<double> projected_;  // R, column-major, n_bounded() rows
  Buffer<double> totals_;

  std::vector<double> weight_of_following_, weight_of_given_;
  double constant_ = 0.0, tolerance_ = 0.0;

  mutable std::mutex lock_;
  mutable std::vector<Buffer<double>> kept_;
  mutable std::unique_ptr<std::atomic<const double*>[]> columns_;
  Index most_columns_ = 0;  // that the budget holds
  mutable Index n_kept_ = 0;
};

}  // namespace kfu

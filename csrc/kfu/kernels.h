// Kernels as the program describes them at run time, and the list of those that exist.
//
// A kernel is a sum of weighted products of leaves,
//     K(x, z) = Σ_t weight_t · Π_l f_l(s_l(x, z)),
// where a leaf is a function f of one statistic s of the pair of points (Statistic below). Every
// leaf gives its value and its slope df/ds, which is enough for all derivatives:
//     ∂K/∂log γ  = s · f'(s)              (γ multiplies the statistic),
//     ∂K/∂log c₀ = (c₀ / γ) · f'(s)       (c₀ is added to γ s),
//     ∂K/∂log γ_k = f'(s) · s_k           (s_k: the part of the statistic that feature k makes),
// so the derivative of a kernel is again a Kernel, evaluated by the same panels.
//
// To add a kernel, write one struct in kernel_list.inc and name it in the list at its foot.
#pragma once

#include <vector>

#include "kfu/types.h"

namespace kfu {

/// What a leaf sees of a pair of points.
enum class Statistic {
  dot,      ///< Σ x z
  sqdist,   ///< Σ (x − z)²
  l1,       ///< Σ |x − z|
  min_sum,  ///< Σ min(x, z), data ≥ 0
  chi2,     ///< Σ (x − z)² / (x + z) with 0/0 = 0, data ≥ 0
  lookup    ///< the data are the kernel matrix
};

/// Which function of the statistic a leaf contributes.
enum class Form { value, slope, d_gamma, d_coef0 };
inline constexpr int n_forms = 4;

/// What the rest of the program has to know about a kernel.
struct LeafInfo {
  const char* name;
  const char* formula;
  Statistic statistic;
  bool has_gamma;           ///< scales the statistic by gamma > 0
  bool is_per_feature;      ///< gamma is one factor per feature (Leaf::scale)
  bool has_coef0;           ///< adds coef0
  bool has_degree;          ///< integer power degree ≥ 1
  bool needs_non_negative;  ///< defined for data ≥ 0 only
  bool is_psd;              ///< positive semidefinite for every admissible parameter (coef0 ≥ 0)
  bool is_internal;         ///< a building block of derivatives, not offered by name
  bool is_within_unit;      ///< its values are in [0, 1]
};

/// One factor of a product.
struct Leaf {
  int kind = 0;  ///< position in the list of kernels
  Form form = Form::value;
  double gamma = 1.0;
  double coef0 = 0.0;
  int degree = 1;
  /// Factor applied to each feature before the statistic is taken; empty = all 1. Features whose
  /// factor is 0 are left out.
  std::vector<double> scale;
};

struct Term {
  double weight = 1.0;
  std::vector<Leaf> leaves;
};

struct Kernel {
  std::vector<Term> terms;
};

/// The list of kernels (internal ones last).
int kernel_count();
const LeafInfo& kernel_info(int kind);
/// Position of `name` in the list, or −1.
int kernel_kind(const char* name);

/// Throws std::invalid_argument when a kernel cannot be evaluated on data with `d` features.
void check_kernel(const Kernel& kernel, Index d);

/// True when the kernel is the lookup in a given matrix.
bool is_lookup(const Kernel& kernel);

/// True when the kernel is x·z itself, so that f is a vector w.
bool is_plain_linear(const Kernel& kernel);

/// True when every value is known to be in [0, 1].
bool is_within_unit(const Kernel& kernel);

/// Multiply-adds behind one value of the kernel on these data: the features of a point, or its
/// entries, which cost about twice as much each.
double value_cost(const DataView& data, const Kernel& kernel);

}  // namespace kfu

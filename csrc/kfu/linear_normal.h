// Products with the normal equations of sparse linear least squares, several columns at a time:
//
//   of_rows       (A Aᵀ + ridge I) P,   P n × t
//   of_features   (AᵀA + ridge I) P,    P d × t
//
// A = √W (X − 1μᵀ) is never written out: row i is root_i (x_i − μ), and what μ takes away has rank
// one. Columns lie side by side, P[i·t + j], as the columns of conjugate gradients do: each entry
// of X is read once for all of them (twice by of_rows, whose two passes go over all rows). All sums
// are float64, in the order of the rows.
#pragma once

#include <vector>

#include "kfu/types.h"

namespace kfu {

class NormalProducts {
 public:
  /// Borrows all of them. CSR only; `root` null: no weights, `mean` (d) null: no intercept.
  NormalProducts(const DataView& data, const double* root, const double* mean, double ridge);

  Index n_rows() const { return data_.n; }
  Index n_features() const { return data_.d; }

  void of_rows(const double* P, Index columns, double* out) const;
  void of_features(const double* P, Index columns, double* out) const;

 private:
  DataView data_;
  const double* root_;
  const double* mean_;
  double ridge_;
};

}  // namespace kfu

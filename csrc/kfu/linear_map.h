// The linear kernel through its explicit weight vector w = Σ β_i x_i.
//
// With w at hand a gradient costs one pass over the data, whatever the number of variables that
// moved, and is accurate to float64: no rows of K, no drift.
#pragma once

#include <vector>

#include "kfu/types.h"

namespace kfu {

class LinearMap {
 public:
  LinearMap(const DataView& data, int threads)
      : data_(data), threads_(threads), w_(static_cast<std::size_t>(data.d), 0.0) {}

  /// w += Σ_k coef[k]·x(points[k])
  void add(const Index* points, const double* coef, Index count);
  /// out[k] = w · x(points[k])
  void apply(const Index* points, Index count, double* out) const;

 private:
  DataView data_;
  int threads_;
  std::vector<double> w_;
};

}  // namespace kfu

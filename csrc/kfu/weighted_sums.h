// Sums of kernel values with coefficients, computed from scratch: gradients that are exact.
//
// The order of summation is fixed by the points alone, so threads do not change a bit.
#pragma once

#include <vector>

#include "kfu/gram.h"
#include "kfu/types.h"

namespace kfu {

struct WeightedPoints {
  std::vector<Index> points;
  std::vector<double> coef;

  void add(Index point, double weight) {
    points.push_back(point);
    coef.push_back(weight);
  }
  Index size() const { return static_cast<Index>(points.size()); }
};

/// sums[c] gains Σ_s coef_s K(s, points[c]), or that of the part of values that is named. Returns
/// the number of values computed.
template <class T>
Index add_columns(const WeightedPoints& support, const Gram<T>& gram,
                  const std::vector<Index>& points, std::vector<double>& sums,
                  Part part = Part::whole);

/// sums[i] gains Σ_j coef_j K(i, j) over the members, each value of K computed once (but for the
/// blocks on the diagonal). Returns the number of values computed.
template <class T>
Index symmetric_sums(const WeightedPoints& members, const Gram<T>& gram, int threads,
                     std::vector<double>& sums, Part part = Part::whole);

}  // namespace kfu

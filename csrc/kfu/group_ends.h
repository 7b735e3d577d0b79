// The ends of the KKT interval of every group of variables (dual.h), and what they say.
#pragma once

#include <algorithm>

#include "kfu/dual.h"
#include "kfu/smo_loops.h"

namespace kfu {

/// The gap of the maximal violating pair; 0 when no pair can move.
inline double pair_gap(const Extremes& ends) {
  return ends.up < 0 || ends.low < 0 ? 0.0 : ends.low_value - ends.up_value;
}

struct GroupEnds {
  Extremes of[kMostGroups];

  /// The largest gap of a group or, without equality, the largest projected gradient.
  double gap(int n_groups, bool has_equality) const {
    if (!has_equality) return std::max({0.0, -of[0].up_value, of[0].low_value});
    double largest = 0.0;
    for (int g = 0; g < n_groups; ++g) largest = std::max(largest, pair_gap(of[g]));
    return largest;
  }

  /// The middle of a group's interval: its threshold while it is not yet optimal.
  double threshold(int g, bool has_equality) const {
    if (!has_equality) return 0.0;
    if (of[g].up < 0 || of[g].low < 0)  // no pair: any value that closes no direction
      return of[g].up >= 0 ? of[g].up_value : of[g].low >= 0 ? of[g].low_value : 0.0;
    return 0.5 * (of[g].up_value + of[g].low_value);
  }
};

}  // namespace kfu

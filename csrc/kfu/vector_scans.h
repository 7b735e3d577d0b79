// Reductions over long vectors. Four partial results hide the latency of an addition or a
// comparison, which a compiler that keeps to the order of the source may not do by itself.
#pragma once

#include <algorithm>
#include <cmath>

#include "kfu/types.h"

namespace kfu {

inline double largest_magnitude(const double* values, Index count) {
  double found[4] = {0.0, 0.0, 0.0, 0.0};
  Index k = 0;
  for (; k + 4 <= count; k += 4)
    for (int l = 0; l < 4; ++l) found[l] = std::max(found[l], std::fabs(values[k + l]));
  for (; k < count; ++k) found[0] = std::max(found[0], std::fabs(values[k]));
  return std::max(std::max(found[0], found[1]), std::max(found[2], found[3]));
}

/// The sum of term(k) over k in [0, count).
template <class Term>
double sum_of(Index count, Term term) {
  double sums[4] = {0.0, 0.0, 0.0, 0.0};
  Index k = 0;
  for (; k + 4 <= count; k += 4)
    for (int l = 0; l < 4; ++l) sums[l] += term(k + l);
  for (; k < count; ++k) sums[0] += term(k);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// The largest of zero and term(k) over k in [0, count).
template <class Term>
double largest_of(Index count, Term term) {
  double found[4] = {0.0, 0.0, 0.0, 0.0};
  Index k = 0;
  for (; k + 4 <= count; k += 4)
    for (int l = 0; l < 4; ++l) found[l] = std::max(found[l], term(k + l));
  for (; k < count; ++k) found[0] = std::max(found[0], term(k));
  return std::max(std::max(found[0], found[1]), std::max(found[2], found[3]));
}

}  // namespace kfu

#include "kfu/extent.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kfu {

namespace {

constexpr Index kPiece = Index{1} << 16;  // values that one thread takes at a time

struct Extent {
  double largest = 0.0;
  bool has_nan = false;
};

// Eight chains side by side, so that memory is what it waits for.
template <class S>
Extent extent_of(const S* values, Index count) {
  constexpr int kChains = 8;
  S largest[kChains] = {};
  int strange[kChains] = {};
  Index k = 0;
  for (; k + kChains <= count; k += kChains)
    for (int l = 0; l < kChains; ++l) {
      const S value = std::fabs(values[k + l]);
      largest[l] = value > largest[l] ? value : largest[l];
      strange[l] |= value != value;
    }
  for (; k < count; ++k) {
    const S value = std::fabs(values[k]);
    largest[0] = value > largest[0] ? value : largest[0];
    strange[0] |= value != value;
  }
  Extent found;
  for (int l = 0; l < kChains; ++l) {
    found.largest = std::max(found.largest, static_cast<double>(largest[l]));
    found.has_nan = found.has_nan || strange[l] != 0;
  }
  return found;
}

template <class S>
double largest_of(const S* values, Index count, int threads) {
  const Index n_pieces = (count + kPiece - 1) / kPiece;
  double largest = 0.0;
  bool has_nan = false;
#pragma omp parallel for schedule(static) num_threads(threads) if (n_pieces > 4) \
    reduction(max : largest) reduction(|| : has_nan)
  for (Index p = 0; p < n_pieces; ++p) {
    const Extent found = extent_of(values + p * kPiece, std::min(kPiece, count - p * kPiece));
    largest = std::max(largest, found.largest);
    has_nan = has_nan || found.has_nan;
  }
  return has_nan ? std::numeric_limits<double>::quiet_NaN() : largest;
}

}  // namespace

double largest_modulus(const double* values, Index count, int threads) {
  return largest_of(values, count, threads);
}

double largest_modulus(const float* values, Index count, int threads) {
  return largest_of(values, count, threads);
}

}  // namespace kfu

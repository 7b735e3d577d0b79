#include "kfu/linear_proximal.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kfu {

namespace {

constexpr Index kBlock = 8192;

struct Place {
  double beta;
  bool is_inside;
};

template <bool HasKink>
inline Place place(const ProximalArrays& a, Index k, double score) {
  double value = a.centre[k] - a.weight[k] * score;
  bool is_off_kink = true;
  if constexpr (HasKink) {
    const double rest = std::abs(value) - a.weight[k] * a.kink[k];
    is_off_kink = a.kink[k] == 0.0 || rest > 0.0;
    value = std::copysign(std::max(rest, 0.0), value);
  }
  return {std::min(std::max(value, a.lower[k]), a.upper[k]),
          is_off_kink && value > a.lower[k] && value < a.upper[k]};
}

template <bool HasKink>
Index point_of(const ProximalArrays& a, double* beta, Index* inside) {
  Index count = 0;
  for (Index k = 0; k < a.n; ++k) {
    const Place found = place<HasKink>(a, k, a.score[k]);
    beta[k] = found.beta;
    inside[count] = k;
    count += found.is_inside;
  }
  return count;
}

template <bool HasKink>
ProximalSlope slope_of(const ProximalArrays& a, const double* direction, double t, Index begin,
                       Index end) {
  ProximalSlope sum{0.0, 0.0};
  for (Index k = begin; k < end; ++k) {
    const double ds = direction[k];
    const Place found = place<HasKink>(a, k, a.score[k] + t * ds);
    sum.first += (found.beta - a.centre[k]) * ds;
    sum.second += found.is_inside ? a.weight[k] * ds * ds : 0.0;
  }
  return sum;
}

}  // namespace

Index proximal_point(const ProximalArrays& a, double* beta, Index* inside) {
  return a.kink ? point_of<true>(a, beta, inside) : point_of<false>(a, beta, inside);
}

ProximalSlope proximal_slope(const ProximalArrays& a, const double* direction, double t,
                             int threads) {
  const Index blocks = (a.n + kBlock - 1) / kBlock;
  std::vector<ProximalSlope> sums(static_cast<std::size_t>(blocks));
#pragma omp parallel for schedule(static) num_threads(threads) if (blocks > 1)
  for (Index block = 0; block < blocks; ++block) {
    const Index begin = block * kBlock, end = std::min(a.n, begin + kBlock);
    sums[block] = a.kink ? slope_of<true>(a, direction, t, begin, end)
                         : slope_of<false>(a, direction, t, begin, end);
  }
  ProximalSlope total{0.0, 0.0};
  for (const ProximalSlope& part : sums) {
    total.first += part.first;
    total.second += part.second;
  }
  return total;
}

}  // namespace kfu

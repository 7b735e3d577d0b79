#include "kfu/linear_proximal.h"

#include <algorithm>
#include <vector>

namespace kfu {

namespace {

constexpr Index kBlock = 8192;

}  // namespace

Index proximal_point(const ProximalArrays& a, double* beta, Index* inside) {
  Index count = 0;
  for (Index k = 0; k < a.n; ++k) {
    const double value = a.centre[k] - a.weight[k] * a.score[k];
    beta[k] = std::min(std::max(value, a.lower[k]), a.upper[k]);
    inside[count] = k;
    count += value > a.lower[k] && value < a.upper[k];
  }
  return count;
}

ProximalSlope proximal_slope(const ProximalArrays& a, const double* direction, double t,
                             int threads) {
  const Index blocks = (a.n + kBlock - 1) / kBlock;
  std::vector<ProximalSlope> sums(static_cast<std::size_t>(blocks));
#pragma omp parallel for schedule(static) num_threads(threads) if (blocks > 1)
  for (Index block = 0; block < blocks; ++block) {
    double first = 0.0, second = 0.0;
    const Index end = std::min(a.n, (block + 1) * kBlock);
    for (Index k = block * kBlock; k < end; ++k) {
      const double ds = direction[k];
      const double value = a.centre[k] - a.weight[k] * (a.score[k] + t * ds);
      first += (std::min(std::max(value, a.lower[k]), a.upper[k]) - a.centre[k]) * ds;
      second += value > a.lower[k] && value < a.upper[k] ? a.weight[k] * ds * ds : 0.0;
    }
    sums[block] = {first, second};
  }
  ProximalSlope total{0.0, 0.0};
  for (const ProximalSlope& part : sums) {
    total.first += part.first;
    total.second += part.second;
  }
  return total;
}

}  // namespace kfu

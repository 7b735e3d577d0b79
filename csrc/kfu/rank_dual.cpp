#include "kfu/rank_dual.h"

#include <cmath>
#include <limits>

namespace kfu {

namespace {

constexpr Index kPairsPerTask = 1 << 15;
constexpr double kCancelled = 8.0 * std::numeric_limits<double>::epsilon();

RankCertificate part_of_certificate(const RankProblem& problem, const RankState& state, Index begin,
                                    Index end) {
  RankCertificate part;
  for (Index p = begin; p < end; ++p) {
    const double alpha = state.alpha[p], upper = problem.upper[p], target = problem.target_of(p);
    const double F = state.g[problem.preferred[p]] - state.g[problem.other[p]] - target;
    part.kkt_gap = std::max(part.kkt_gap, rank_violation(F, alpha, upper));
    part.duality_gap += F > 0.0 ? alpha * F : (alpha - upper) * F;
    part.objective += target * alpha;
    part.n_usv += alpha > 0.0 && alpha < upper;
  }
  return part;
}

}  // namespace

std::vector<double> rank_coefficients(const RankProblem& problem,
                                      const std::vector<double>& alpha) {
  std::vector<double> gamma(problem.points.size(), 0.0), moduli(problem.points.size(), 0.0);
  for (Index p = 0; p < problem.n_pairs(); ++p) {
    if (alpha[p] == 0.0) continue;
    const std::int32_t u = problem.preferred[p], v = problem.other[p];
    gamma[u] += alpha[p];
    gamma[v] -= alpha[p];
    moduli[u] += alpha[p];
    moduli[v] += alpha[p];
  }
  for (std::size_t i = 0; i < gamma.size(); ++i)
    if (std::fabs(gamma[i]) <= kCancelled * moduli[i]) gamma[i] = 0.0;
  return gamma;
}

RankCertificate certify_rank(const RankProblem& problem, const RankState& state, int threads) {
  const Index m = problem.n_pairs(), n_tasks = (m + kPairsPerTask - 1) / kPairsPerTask;
  std::vector<RankCertificate> parts(static_cast<std::size_t>(n_tasks));
#pragma omp parallel for schedule(static) num_threads(threads) if (n_tasks > 1)
  for (Index b = 0; b < n_tasks; ++b)
    parts[b] = part_of_certificate(problem, state, b * kPairsPerTask,
                                   std::min(m, (b + 1) * kPairsPerTask));
  RankCertificate whole;
  for (const RankCertificate& part : parts) {
    whole.objective += part.objective;
    whole.duality_gap += part.duality_gap;
    whole.kkt_gap = std::max(whole.kkt_gap, part.kkt_gap);
    whole.n_usv += part.n_usv;
  }
  for (std::size_t i = 0; i < state.gamma.size(); ++i) {
    whole.objective -= 0.5 * state.gamma[i] * state.g[i];
    whole.n_sv += state.gamma[i] != 0.0;
  }
  return whole;
}

}  // namespace kfu

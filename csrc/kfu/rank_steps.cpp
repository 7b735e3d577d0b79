#include "kfu/rank_steps.h"

#include <algorithm>

#include "kfu/rank_dual.h"
#include "kfu/rank_newton.h"

namespace kfu {

namespace {

constexpr double kFloor = 1e-12;    // of a curvature, relative to the values of K
constexpr double kGreedy = 0.5;     // of the worst violation: pairs below wait for a later sweep
constexpr double kRelevant = 0.05;  // of the worst violation: pairs below are left out for a while
constexpr double kEnough = 0.2;     // of the worst violation, before all pairs are looked at again
constexpr Index kSweeps = 10;       // at most, before all pairs are looked at again
constexpr double kNewtonShare = 4;  // times the values of K that single steps have read

double gradient(const LocalPair& p, const std::vector<double>& g) {
  return g[p.u] - g[p.v] - p.target;
}

double violation(const LocalPair& p, const std::vector<double>& g) {
  return rank_violation(gradient(p, g), p.alpha, p.upper);
}

// Moves one pair; returns whether it moved.
template <class T>
bool step(const SquareTier<T>& block, const SmoLoops<T, double>& loops, LocalPair& p,
          std::vector<double>& g) {
  const double F = gradient(p, g), wanted = p.alpha - F / p.curvature;
  const double alpha = std::min(std::max(wanted, 0.0), p.upper), delta = alpha - p.alpha;
  if (delta == 0.0) return false;
  p.alpha = alpha;
  const T* rows[2] = {block.get(p.u), block.get(p.v)};
  const double deltas[2] = {delta, -delta};
  loops.add_rows(g.data(), rows, deltas, 2, static_cast<Index>(g.size()));
  return true;
}

}  // namespace

template <class T>
void set_curvatures(const SquareTier<T>& block, std::vector<LocalPair>& pairs) {
  for (LocalPair& p : pairs) {
    const T *u = block.get(p.u), *v = block.get(p.v);
    const double K_uu = u[p.u], K_vv = v[p.v], K_uv = u[p.v];
    const double floor = kFloor * std::max(1.0, K_uu + K_vv);
    p.curvature = std::max(K_uu + K_vv - 2.0 * K_uv, floor);
  }
}

template <class T>
StepsResult solve_pairs(const SquareTier<T>& block, const SmoLoops<T, double>& loops, double goal,
                        Index most, std::vector<LocalPair>& pairs, std::vector<double>& g) {
  StepsResult result;
  std::vector<LocalPair*> relevant;
  Index paid = 0;  // steps up to the last one on all free pairs
  while (true) {
    double worst = 0.0;
    for (const LocalPair& p : pairs) worst = std::max(worst, violation(p, g));
    result.violation = worst;
    if (worst <= goal || result.steps >= most) return result;
    relevant.clear();
    for (LocalPair& p : pairs)
      if ((p.alpha > 0.0 && p.alpha < p.upper) || violation(p, g) > kRelevant * worst)
        relevant.push_back(&p);
    const double enough = std::max(goal, kEnough * worst);
    const Index before = result.steps;
    double level = kGreedy * worst;
    for (Index sweep = 0; sweep < kSweeps && result.steps < most; ++sweep) {
      double top = 0.0;
      for (LocalPair* p : relevant) {
        const double v = violation(*p, g);
        top = std::max(top, v);
        if (v > level && v > goal && result.steps < most) result.steps += step(block, loops, *p, g);
      }
      if (top <= enough) break;
      level = std::max(kGreedy * top, 0.5 * enough);
      if (sweep + 1 < kSweeps) continue;
      const double budget = kNewtonShare * 2.0 * static_cast<double>(result.steps - paid) *
                            static_cast<double>(g.size());
      const Index iterations = newton_step(block, loops, goal, budget, pairs, g);
      result.steps += iterations;
      if (iterations > 0) paid = result.steps;
    }
    if (result.steps == before) return result;  // no step is large enough to change an α
  }
}

template void set_curvatures<float>(const SquareTier<float>&, std::vector<LocalPair>&);
template void set_curvatures<double>(const SquareTier<double>&, std::vector<LocalPair>&);
template StepsResult solve_pairs<float>(const SquareTier<float>&, const SmoLoops<float, double>&,
                                        double, Index, std::vector<LocalPair>&,
                                        std::vector<double>&);
template StepsResult solve_pairs<double>(const SquareTier<double>&, const SmoLoops<double, double>&,
                                         double, Index, std::vector<LocalPair>&,
                                         std::vector<double>&);

}  // namespace kfu

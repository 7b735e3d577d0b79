// What a caller may ask of the dual solver.
#pragma once

#include "kfu/types.h"

namespace kfu {

/// How the outer loop chooses the variables of the next subproblem.
enum class WorkingSetRule {
  svmfu,     ///< keep unbounded SVs, evict the most satisfied, refill by the most violating
  svmlight,  ///< the q steepest feasible directions, afresh each round
  osuna,     ///< sequential scan for violators, replacing satisfied points
  keerthi,   ///< the maximal violating pair alone (SMO)
};

/// How the subproblem solver chooses its pair.
enum class PairRule {
  first_order,   ///< maximal violating pair (SvmFu)
  second_order,  ///< largest guaranteed decrease for the most violating first index
};

struct SolverSettings {
  double tolerance = 1e-3;     ///< bound on the gap of the maximal violating pair
  double cache_bytes = 512e6;  ///< square tier + rectangular tier
  Index chunk = 0;             ///< variables per subproblem; 0 chooses and adapts
  int threads = 1;
  WorkingSetRule working_set = WorkingSetRule::svmfu;
  PairRule pair = PairRule::second_order;
  bool shrinking = true;     ///< drop settled variables; always followed by a full check
  Index max_iterations = 0;  ///< pair steps; 0: max(10⁷, 100·n)
  bool polish = false;       ///< small problems: go on to rounding accuracy
  double value_cost = 1e9;   ///< multiply-adds behind one value of K
  Simd simd = Simd::best;
};

}  // namespace kfu

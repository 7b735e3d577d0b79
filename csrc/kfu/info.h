// What the dual solver tells about a run.
#pragma once

#include "kfu/types.h"

namespace kfu {

enum class Status {
  running,         ///< more rounds are needed
  optimal,         ///< gap ≤ tolerance by the maintained gradient, over all variables
  max_iterations,  ///< the iteration budget is used up
  stalled,         ///< no variable can be moved at this precision of K
};

/// Counters of the outer and inner loops; all start at zero.
struct Info {
  Index rounds = 0;              ///< subproblems solved
  Index iterations = 0;          ///< pair (or single-variable) steps
  Index kernel_evaluations = 0;  ///< values of K computed, padding not counted
  Index cache_hits = 0;          ///< full rows found in the rectangular tier
  Index cache_misses = 0;        ///< full rows computed
  Index reductions = 0;          ///< times the subproblem was reduced to its unbounded variables
  Index shrinks = 0;             ///< times settled variables were dropped
  Index chunk = 0;               ///< current subproblem size
  Index n_active = 0;            ///< variables not dropped
  double gap = 0;                ///< maximal violating pair over the active variables
};

}  // namespace kfu

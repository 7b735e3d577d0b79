// What the dual solver tells about a run.
#pragma once

#include <chrono>

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
  Index overlapped_rounds = 0;   ///< of these, alongside deferred columns
  Index iterations = 0;          ///< pair (or single-variable) steps
  Index kernel_evaluations = 0;  ///< values of K computed, padding not counted
  Index cache_hits = 0;          ///< full rows found in the rectangular tier
  Index cache_misses = 0;        ///< full rows computed
  Index reductions = 0;          ///< times the subproblem was reduced to its unbounded variables
  Index shrinks = 0;             ///< times settled variables were dropped
  Index renewals = 0;            ///< times the gradient was mended, as rows are coarse
  Index extrapolations = 0;      ///< times β was moved along the differences of snapshots
  Index chunk = 0;               ///< current subproblem size
  Index n_active = 0;            ///< variables not dropped
  double gap = 0;                ///< maximal violating pair over the active variables
  // Where the time went, in seconds.
  double seconds_selection = 0;   ///< scanning, choosing the chunk, shrinking
  double seconds_block = 0;       ///< bringing the chunk's block of K up to date
  double seconds_subproblem = 0;  ///< pair steps
  double seconds_gradient = 0;    ///< full rows and the gradient of all variables
};

/// Adds the time since the last lap (or since it was made) to one of the figures above.
class LapClock {
 public:
  void lap(double& seconds) {
    const auto now = std::chrono::steady_clock::now();
    seconds += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace kfu

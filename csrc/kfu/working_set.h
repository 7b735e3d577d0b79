// Which variables the next subproblem works on.
//
// Satisfaction of variable k at threshold θ (positive is good; Rifkin 2002, 2.2.5):
//     at its lower bound  F_k − θ,   at its upper bound  θ − F_k,   in between  −|F_k − θ|,
// with F_k the slope in the direction that the bound leaves, θ that of its group (dual.h).
//
// svmfu     The chunk keeps its unbounded variables; the most satisfied are evicted to make room
// for
//           the most violating outside it. Room: 35% of the chunk. (The original's room, chunk −
//           unbounded − 200 but at least 100, is too much when unbounded variables are few and too
//           little when they crowd the chunk: 12,000 of them took 700 rounds instead of 140. Where
//           room runs out, the unbounded variables longest in the chunk leave.) F is maintained for
//           every active variable, so the priority queue of the original, whose entries go stale
//           until looked at, is here an exact partial ordering, and its look-ahead has nothing left
//           to find.
// svmlight  The q/2 smallest F that may increase and the q/2 largest that may decrease.
// osuna     Scan on from where the last scan ended, take violators as they come, replace variables
// of
//           the chunk that are satisfied at a bound.
// keerthi   The maximal violating pair.
// Every rule includes the maximal violating pair, which is what makes each round a strict decrease.
#pragma once

#include <vector>

#include "kfu/group_ends.h"
#include "kfu/settings.h"

namespace kfu {

/// What a rule looks at: the active variables, by place.
struct WorkingSetView {
  Index n_active;
  Index first, last;  ///< places that svmfu may choose from: the F of others may be out of date
  const double* F;
  const double* up_mask;   ///< F + up_mask: the slope upwards, +inf where there is no way up
  const double* low_mask;  ///< F + low_mask: the slope downwards, −inf where there is no way down
  const double* satisfaction;  ///< for svmfu: of [first, last) and of the chunk
  const double* beta;
  const double* lower;
  const double* upper;
  const double* kink;
  const char* group;
  int n_groups;
  bool has_equality;
  GroupEnds ends;  ///< the maximal violating pair of each group
  double tolerance;
  Index capacity;                     ///< of the chunk
  const std::vector<Index>& chunk;    ///< place held by each slot
  const std::vector<Index>& slot_of;  ///< by place; −1: not in the chunk
  const std::vector<Index>& entered;  ///< round in which each slot got its variable
};

/// Places to bring into the chunk and slots to give up for them. Slots that are neither given up
/// nor taken keep their variable. evict.size() + free slots ≥ add.size().
struct WorkingSetEdit {
  std::vector<Index> add;
  std::vector<Index> evict;
};

class WorkingSetSelector {
 public:
  explicit WorkingSetSelector(WorkingSetRule rule) : rule_(rule) {}

  WorkingSetEdit select(const WorkingSetView& view);
  /// The size that suits the rule when the caller asks for none.
  Index default_chunk(Index n) const;
  /// Whether the chunk should grow when unbounded variables crowd it.
  bool adapts() const { return rule_ == WorkingSetRule::svmfu; }

 private:
  WorkingSetEdit svmfu(const WorkingSetView& view);
  WorkingSetEdit svmlight(const WorkingSetView& view);
  WorkingSetEdit osuna(const WorkingSetView& view);
  WorkingSetEdit keerthi(const WorkingSetView& view);

  WorkingSetRule rule_;
  Index cursor_ = 0;               // osuna: where the scan goes on
  std::vector<Index> candidates_;  // svmfu: memory
};

}  // namespace kfu

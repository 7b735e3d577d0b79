// The SvmFu subproblem solver: pair steps on a square block of K.
//
// Over the m variables of a chunk, with all others held fixed, minimise the dual of dual.h. A step
// moves t from β_j to β_i (i may increase, j may decrease, F_i < F_j):
//     t = (F_j − F_i) / η,  η = K_ii + K_jj − 2K_ij (floored: duplicates, indefinite kernels),
// clipped so that both stay in their boxes, exactly on a bound that is reached; then
// F += t(K_i − K_j). First index: the smallest F that may increase. Second index: the largest F
// that may decrease (first order, SvmFu) or the largest guaranteed decrease (F_k − F_i)²/η (second
// order; Fan, Chen & Lin 2005). Stops when the gap max F(low) − min F(up) ≤ tolerance.
//
// Reduced working set (Rifkin 2002, 2.4.1): after kReduceAfter consecutive steps in which both
// variables were unbounded, iterate on the unbounded variables alone until they are optimal, then
// return to the full set, bring its F up to date, and arm the rule again.
//
// Extrapolation (extrapolation.h): pair steps are slow where K is nearly singular over the
// unbounded variables (large C, small γ). Every so often β moves on along the differences of the
// last states, which saves up to nine steps of ten. That multiplies the rounding errors of F too:
// some values are checked each time, and F is computed again from the start of the iteration where
// the errors show beside the gap.
//
// F is the slope in the direction in question (dual.h): a variable with a kink stops there, and
// goes on in a later step if that pays. Groups: both variables of a pair are of the group whose gap
// is the largest.
//
// Without the equality constraint a step moves one variable: β_k −= F_k / K_kk, clipped; the gap is
// then the largest projected gradient.
//
// Rows of the block are asked for when a variable is first moved (BlockRows).
//
// T is the type of the rows, G that of the subproblem's F. With G = float a step costs half as
// much; its rounding acts on this subproblem alone, whose F starts from the float64 one (less a
// common threshold, so that values near it are small) and is not handed back. It decides which of
// the last steps are taken, not where they lead.
#pragma once

#include <utility>
#include <vector>

#include "kfu/extrapolation.h"
#include "kfu/group_ends.h"
#include "kfu/settings.h"

namespace kfu {

/// Rows of a symmetric block, filled on demand. A pointer from get() stays valid while the block's
/// variables stay the same.
template <class T>
class BlockRows {
 public:
  virtual ~BlockRows() = default;
  virtual bool has(Index k) const = 0;
  /// Requires has(k). The row is padded with finite values to padded(m).
  virtual const T* get(Index k) const = 0;
  /// Computes rows ks[0..count); afterwards has(k) holds for each.
  virtual void fill(const Index* ks, Index count) = 0;
  /// How many rows it is sensible to fill at once.
  virtual Index batch() const = 0;
};

/// The state of a subproblem; arrays are padded (see smo_loops.h) and owned here.
template <class T, class G>
struct LocalProblem {
  Index m = 0;
  int n_groups = 1;
  std::vector<double> beta, lower, upper, kink;
  std::vector<char> group;
  std::vector<G> F;
  /// By group: what turns F into the slope in a direction (0, or the kink with its sign), or
  /// excludes the variable from it.
  std::vector<G> up_mask[kMostGroups], low_mask[kMostGroups];
  std::vector<T> diagonal;  ///< K_kk + ridge_k, as in the rows

  /// Sizes the arrays for m variables, padding entries excluded from every choice.
  void resize(Index size, int groups);
  /// Sets the masks of variable k from beta, lower, upper, kink and group.
  void update_mask(Index k);
  bool is_free(Index k) const { return is_unbounded(beta[k], lower[k], upper[k], kink[k]); }
  int group_of(Index k) const { return group[k]; }
  double up_F(Index k) const { return static_cast<double>(F[k] + up_mask[group_of(k)][k]); }
  double low_F(Index k) const { return static_cast<double>(F[k] + low_mask[group_of(k)][k]); }
};

struct SmoResult {
  Index iterations = 0;
  Index reductions = 0;
  Index extrapolations = 0;
  double gap = 0;
};

template <class T, class G>
class Smo {
 public:
  Smo(Simd simd, PairRule pair, bool has_equality);

  /// Improves p until the gap is ≤ tolerance, max_iterations steps are done, or no step moves.
  /// F of p is exact to rounding if `wants_F`, else to what the tolerance needs.
  SmoResult solve(LocalProblem<T, G>& p, BlockRows<T>& rows, double tolerance, Index max_iterations,
                  bool wants_F = true);

 private:
  struct Step {
    bool moved = false;
    bool stayed_free = false;  ///< both variables were unbounded before the step
  };

  SmoResult iterate(LocalProblem<T, G>& p, BlockRows<T>& rows, double tolerance,
                    Index max_iterations, bool may_reduce);
  Step pair_step(LocalProblem<T, G>& p, BlockRows<T>& rows, GroupEnds& ends);
  struct Start {  // of an iteration, from which its F can be computed again
    std::vector<double> beta;
    std::vector<G> F;
  };
  /// True if p has changed, so that the ends are out of date.
  bool extrapolate(LocalProblem<T, G>& p, BlockRows<T>& rows, const GroupEnds& ends,
                   const Start& start, Extrapolation<G>& extrapolation);
  /// The largest error of F among some variables.
  double drift(const LocalProblem<T, G>& p, const BlockRows<T>& rows, const Start& start) const;
  void recompute(LocalProblem<T, G>& p, const BlockRows<T>& rows, const Start& start) const;
  Step single_step(LocalProblem<T, G>& p, BlockRows<T>& rows, GroupEnds& ends);
  const T* row(LocalProblem<T, G>& p, BlockRows<T>& rows, Index k, const GroupEnds& ends);
  GroupEnds scan(const LocalProblem<T, G>& p) const;
  GroupEnds step_and_scan(LocalProblem<T, G>& p, const T* row_i, const T* row_j, double t) const;
  SmoResult reduced(LocalProblem<T, G>& p, BlockRows<T>& rows, double tolerance,
                    Index max_iterations);

  const SmoLoops<T, G>& loops_;
  PairRule pair_;
  bool has_equality_;
  std::vector<T> zero_row_;        // second row of a single-variable step
  std::vector<Index> candidates_;  // scratch of row(), as is ranked_
  std::vector<std::pair<double, Index>> ranked_;
};

extern template class Smo<float, float>;
extern template class Smo<float, double>;
extern template class Smo<double, double>;
extern template struct LocalProblem<float, float>;
extern template struct LocalProblem<float, double>;
extern template struct LocalProblem<double, double>;

}  // namespace kfu

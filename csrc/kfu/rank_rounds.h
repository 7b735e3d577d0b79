// The outer loop of the ranking machine: choose points and the pairs among them, solve the
// subproblem on their block of K, bring g = Kγ up to date at every point.
//
// The working set is bounded by points, since the block and the update of g cost by the point:
// pairs come free with their points. Pairs are taken by violation in steps of a factor two, and
// within such a step in their order, which keeps a query together: the pairs of a query share
// points. The worst pair is always among them, so every round decreases the objective. All pairs
// between the chosen points then take part, unless they are satisfied at a bound.
//
// Millions of pairs need not be looked at in every round: a pair at a bound that was satisfied by s
// is still satisfied while no value of g has moved by s/2. A scan of all pairs keeps those with a
// small s (the near ones), and the next scans are of these alone while that is sure.
//
// Where all points fit into one block its g is the whole g, and nothing else is computed. For the
// linear kernel g comes from w = Σ γ_i x_i. Otherwise g gains rows of K, kept in the rectangular
// tier within the cache budget.
#pragma once

#include <memory>
#include <vector>

#include "kfu/gram.h"
#include "kfu/info.h"
#include "kfu/linear_map.h"
#include "kfu/rank_dual.h"
#include "kfu/rank_steps.h"
#include "kfu/row_tier.h"
#include "kfu/settings.h"
#include "kfu/square_tier.h"

namespace kfu {

/// The loop as its owner sees it, whatever the precision of K.
class RankLoop {
 public:
  virtual ~RankLoop() = default;
  /// One subproblem, at most `allowed` steps.
  virtual Status round(double tolerance, Index allowed) = 0;
  /// To be called when g was replaced from outside.
  virtual void g_was_replaced() = 0;
  virtual const Info& info() const = 0;
};

template <class T>
class RankRounds final : public RankLoop {
 public:
  /// All arguments outlive the loop. `state` holds a feasible α with its γ and g. `linear` may be
  /// null.
  RankRounds(const Gram<T>& gram, const RankProblem& problem, RankState& state,
             const SolverSettings& settings, std::unique_ptr<LinearMap> linear);

  Status round(double tolerance, Index allowed) override;
  void g_was_replaced() override { reach_ = 0.0; }
  const Info& info() const override { return info_; }

 private:
  /// A pair that is not settled, or might not be for long.
  struct Near {
    Index pair;
    float violation;  // −1: at a bound and satisfied
  };

  double scan();
  float violation_of(Index p, double& slack) const;
  void find_near_pairs();
  void choose_points(double worst, double tolerance);
  void place_points(const std::vector<std::int32_t>& wanted);
  void collect_pairs();
  Index store(const std::vector<double>& local_g);
  void update_g(const std::vector<Index>& moved, const std::vector<double>& delta);
  void add_rows_of_K(const std::vector<Index>& moved, const std::vector<double>& delta);
  void mark_busy_points();
  bool covers_all() const { return capacity_ == problem_.n_points(); }

  const Gram<T>& gram_;
  const RankProblem& problem_;
  RankState& state_;
  SolverSettings settings_;
  Index capacity_;  // points of a block
  std::unique_ptr<LinearMap> map_;
  std::unique_ptr<ColumnSet> columns_;
  std::unique_ptr<RowTier<T>> rows_;
  std::unique_ptr<SquareTier<T>> block_;
  const SmoLoops<T, double>& loops_;
  std::vector<double> diagonal_;     // by position
  std::vector<Near> near_;           // all pairs that violate or are inside their box, and more
  Index worst_ = -1;                 // place of the worst pair in near_
  double reach_ = 0.0;               // pairs satisfied by more than that were not near
  double drift_ = 0.0;               // how far values of g may have moved since
  std::vector<std::int32_t> chunk_;  // by slot: position
  std::vector<std::int32_t> slot_;   // by position; −1: not in the chunk
  std::vector<char> is_busy_;        // positions whose rows of K are worth keeping
  std::vector<LocalPair> pairs_;
  Info info_;
};

extern template class RankRounds<float>;
extern template class RankRounds<double>;

}  // namespace kfu

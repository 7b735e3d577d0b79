// The outer loop of SvmFu: choose a chunk, solve it, bring the gradient of all variables up to
// date.
//
// Invariant between rounds: F = (K + ridge)β + linear for every active variable, in float64, by the
// values of K at precision T (rounded to fixed point where rows are kept so). The gradient is
// updated lazily: only rows of variables that moved in the subproblem are formed, each fused with
// its update (Gram::accumulate), and only rows of unbounded variables are kept in the rectangular
// tier; where values are cheap, once that would have paid.
//
// Coarse rows (kept_row.h) break the invariant: F is off by what they are, times what β has gained
// through them. That is small beside the gap for most of a run, and when it no longer is, F is
// formed anew from values of K at precision T (dual_solver_refresh.cpp).
//
// Places. Variables are held in an order of their own ("places") so that the active ones form a
// prefix. Shrinking moves variables that have been settled for several rounds behind the prefix and
// remembers β as it was; unshrinking adds to their F what β has gained since. A run never ends
// without a check of all variables.
//
// Deferred columns. Pair steps are the work of one thread. So that others need not wait for it, a
// round may bring F up to date in one half of the active places only; the next chunk is chosen from
// that half, and while it is chosen and solved the other threads do the rest (column_work.h). Then
// the halves change places. Variables of the chunk whose column is not up to date have the F of
// the last subproblem. Which columns are deferred, and in which order a column gains its rows, does
// not depend on threads: with one, the same is done in turn. Whatever needs F of all variables (the
// end, shrinking, extrapolation, too few violators in a half) waits for the rest first. Places are
// dealt to the halves in turn, so that both are alike however the data are sorted.
//
// Extrapolation. Where many chunks are needed to meet every unbounded variable, snapshots of (β, F)
// give directions whose curvature is known, and now and then β is moved to the best point they span
// (extrapolation.h). Snapshots are of one order of the places: shrinking, unshrinking and a new
// gradient forget them.
//
// Convergence is judged here by the maintained F; the caller certifies it in float64
// (certificate.h), may hand the exact gradient back with reset_gradient() and go on, which is
// iterative refinement: the error of K at precision T then only acts on what β changes from there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kfu/column_work.h"
#include "kfu/dual.h"
#include "kfu/extrapolation.h"
#include "kfu/gram.h"
#include "kfu/info.h"
#include "kfu/linear_map.h"
#include "kfu/outer_loops.h"
#include "kfu/row_tier.h"
#include "kfu/settings.h"
#include "kfu/smo.h"
#include "kfu/square_tier.h"
#include "kfu/working_set.h"

namespace kfu {

class PointSums;  // dual_solver_refresh.cpp

/// The outer loop without its precision.
class OuterLoop {
 public:
  virtual ~OuterLoop() = default;
  /// One subproblem. Returns running, or why there is nothing more to do.
  virtual Status round() = 0;
  virtual const Info& info() const = 0;
  /// β by variable.
  virtual std::vector<double> beta() const = 0;
  /// The maximised dual by the maintained gradient; that of shrunk variables is out of date.
  virtual double objective() = 0;
  /// The maintained gradient by variable, or nothing when some of it is out of date (shrunk).
  virtual std::vector<double> gradient() = 0;
  /// Replaces the maintained gradient (by variable) by a more accurate one, for all variables.
  virtual void reset_gradient(const std::vector<double>& F) = 0;
  /// By variable, what rounding kept rows of K may have done to the maintained gradient; `moved` is
  /// Σ|β − β₀|, β₀ being β at the last reset, or zero.
  virtual std::vector<double> rounding_errors(double moved) const = 0;
  /// What that is at a variable, by its root mean square: no bound.
  virtual double usual_rounding() const = 0;
  /// Makes the gradient as accurate as values of K are, where it matters.
  virtual void renew() = 0;
  /// β when the gradient was last formed anew since then; empty: it was not.
  virtual const std::vector<double>& renewed_beta() const = 0;
  /// Goes on to another tolerance, for at most `iterations` more steps.
  virtual void set_goal(double tolerance, Index iterations) = 0;
};

template <class T>
class DualSolver final : public OuterLoop {
 public:
  /// Starts at `beta` (feasible); `gradient`, if not null, is the gradient there. `gram` outlives
  /// the solver. When `linear` is given the kernel is linear and the gradient is kept through it.
  /// `shared`, if not null, holds rows that other solvers have left, and keeps this one's;
  /// variables are then the points of the data, in their order.
  DualSolver(const Gram<T>& gram, const DualProblem& problem, const std::vector<double>& beta,
             const std::vector<double>* gradient, const SolverSettings& settings,
             std::unique_ptr<LinearMap> linear, const SharedRows<T>& shared = {});

  Status round() override;
  const Info& info() const override { return info_; }
  std::vector<double> beta() const override;
  double objective() override;
  std::vector<double> gradient() override;
  void reset_gradient(const std::vector<double>& F) override;
  std::vector<double> rounding_errors(double moved) const override;
  double usual_rounding() const override;
  void renew() override;
  const std::vector<double>& renewed_beta() const override { return renewed_beta_; }
  void set_goal(double tolerance, Index iterations) override {
    settings_.tolerance = tolerance;
    settings_.max_iterations = info_.iterations + iterations;
  }

 private:
  struct Shrunk {  // places [first, last) left the active set when β was `beta` (by variable)
    Index first, last;
    std::vector<double> beta;
  };

  struct Shift {  // what a subproblem's F is less than F_, by group
    double of[kMostGroups];
  };

  struct GroupViolations {
    Violations of[kMostGroups];
  };

  struct Extension {  // kept rows that lack the last columns
    std::vector<Index> points;
    std::vector<double> delta;
    std::vector<KeptRow<T>> rows;
    std::vector<KeptRow<T>> keep;  // the same, or none where a row has no room for more
  };

  struct Moves {  // of a subproblem
    std::vector<Index> places;
    std::vector<double> delta;
  };

  struct Batch {  // the rows of variables that moved: kept, kept in part, and to be computed
    std::vector<KeptRow<T>> kept;
    std::vector<double> kept_delta;
    std::map<Index, Extension> short_rows;  // by the number of columns they have
    std::vector<Index> points;
    std::vector<double> delta;
    std::vector<KeptRow<T>> keep;
    std::vector<Index> extended, inserted;  // variables whose kept rows get more columns, or all
  };

  struct Deferred {  // columns whose F still lacks a batch
    Deferred(std::unique_ptr<Batch> of, Index first, Index last)
        : batch(std::move(of)), columns(first, last) {}
    std::unique_ptr<Batch> batch;
    StagedColumns columns;
  };

  struct Span {
    Index first, last;
  };

  void deal_places();
  void initialise_gradient(const std::vector<double>* gradient);
  Index chunk_capacity() const;
  Index largest_chunk(Index limit) const;
  Index chunk_to_provide_for(bool is_cheap) const;
  Index fitting_chunk() const;
  bool provide_for(Index chunk);
  void build_tiers(Index capacity);
  void count_evaluations();
  void grow_chunk_if_crowded();
  void note_gap();
  void note_progress();
  bool progress_is_slow() const;
  bool has_earned_row(Index variable);
  Index steps_left() const;
  /// A round over all columns. `is_retry`: settled variables have been counted for it.
  Status full_round(bool is_retry);
  /// A round alongside the deferred columns. False, and nothing done but their F brought up to
  /// date, where all variables have to be looked at.
  bool overlapped_round();
  bool choose_from_current(GroupEnds& ends, std::vector<Index>& entered);
  /// Runs `work` in this thread while others do deferred columns. `to_the_end`: all are done then.
  template <class Work>
  void alongside(Work work, bool to_the_end);
  void finish_deferred();
  bool may_defer() const;
  /// Places whose F is up to date, one range of them.
  Span current() const;
  bool is_current(Index k) const;
  /// F of the place in slot s, by the last subproblem where its column is deferred.
  double chunk_F(Index s) const { return is_current(chunk_[s]) ? F_[chunk_[s]] : chunk_F_[s]; }
  /// Of the current places and of the chunk.
  GroupEnds scan() const;
  /// Fills satisfaction_, which selection and shrinking read, for the same.
  GroupViolations measure(const GroupEnds& ends);
  WorkingSetEdit select(const GroupEnds& ends);
  /// Returns the slots that got a new variable.
  std::vector<Index> edit_chunk(WorkingSetEdit edit);
  void prepare_rows(const std::vector<Index>& entered);
  bool may_use_float(double inner) const;
  Moves solve_chunk(const GroupEnds& ends);
  template <class G>
  Moves solve_chunk(Smo<T, G>& smo, double inner, Index steps, const Shift& shift);
  template <class G>
  void load_chunk(LocalProblem<T, G>& local, const Shift& shift) const;
  template <class G>
  Moves store_chunk(const LocalProblem<T, G>& local, const Shift& shift);
  /// Brings F up to date after a subproblem, or part of it.
  void follow(const Moves& moves);
  std::unique_ptr<Batch> make_batch(const Moves& moves);
  bool update_in_halves(std::unique_ptr<Batch>& batch);
  void update_now(const Batch& batch);
  void update_gradient(const Moves& moves);
  void add_kept_rows(const std::vector<KeptRow<T>>& rows, const std::vector<double>& delta,
                     Index first, Index last);
  void extend_kept_rows(const Extension& part, Index valid);
  void recompute_linear_gradient();
  /// Whether the early stage is over, by a gap.
  bool early_stage_is_over(double gap);
  /// Whether the early stage ends with the gap, and what it dropped is to be looked at.
  bool early_stage_ends();
  bool drops_early() const;
  /// Whether settled variables, of which current places are counted, are to leave now.
  bool should_shrink(const GroupEnds& ends, const GroupViolations& violations);
  void drop_settled();
  Index count_settled(const GroupEnds& ends, const GroupViolations& violations);
  void apply_order(const std::vector<Index>& order);
  void unshrink(bool goes_on);
  /// After a round that moved so many variables: whether β may move on along earlier differences.
  bool extrapolation_is_due(Index moved);
  void extrapolate(Index moved);
  bool is_free(Index k) const { return is_unbounded(beta_[k], lower_[k], upper_[k], kink_[k]); }
  /// Sets what depends on the β of place k: its masks and whether its variable is unbounded.
  void note_beta(Index k);
  void owe(Index variable, double delta);
  void owe_short(Index variable, double delta, Index valid);
  void owe_returned(double gained);
  double usual_squares() const;
  double roughness() const;
  /// Whether F is off by too much for such a gap.
  bool is_too_rough(double gap) const;
  /// Whether such a gap is small enough, whatever F may be off by.
  bool is_met(double gap) const;
  void refresh_if_rough(GroupEnds& ends);
  void refresh(const GroupEnds& ends);
  /// Forms F of those anew that have been away and may matter. False if there are none.
  bool mend_returned(const GroupEnds& ends);
  void form_anew(const PointSums& sums, const std::vector<double>& gained);
  std::vector<double> gained_since_exact() const;
  void note_exact(const std::vector<double>& F);
  bool covers_all() const { return static_cast<Index>(chunk_.size()) == n_; }

  const Gram<T>& gram_;
  SolverSettings settings_;
  Index n_, n_active_;
  bool has_equality_;
  int n_groups_;
  Displace displace_;
  // By place.
  std::vector<Index> variable_, point_, slot_of_;
  std::vector<double> F_, beta_, lower_, upper_, linear_, ridge_, kink_, diagonal_;
  std::vector<double> up_mask_,
      low_mask_;                      // F + mask: the slope upwards and downwards (smo_loops.h)
  std::vector<double> satisfaction_;  // with the thresholds of this round (working_set.h)
  std::vector<char> group_;
  std::vector<int> settled_rounds_;
  // By variable.
  std::vector<char> is_free_;
  Index n_unbounded_ = 0;  // how many of them; all are active
  // How often the row was computed, up to what earns it memory; empty: values are dear.
  std::vector<std::uint8_t> times_computed_;
  // By slot of the chunk.
  std::vector<Index> chunk_, entered_;
  std::vector<double> chunk_F_;  // after the last subproblem

  std::unique_ptr<Deferred> deferred_;
  bool defers_;                    // there may be deferred columns at all
  bool first_is_deferred_ = true;  // of the halves, in the last round
  double other_gap_ = 0.0;         // that of the other half, when it was last looked at
  Index other_settled_ = 0;        // variables of the other half, then
  bool should_drop_ = false;       // a round alongside has found that settled ones are to leave

  std::unique_ptr<LinearMap> map_;
  std::shared_ptr<ColumnSet> columns_;  // the places, for full rows; none with map_
  std::shared_ptr<RowTier<T>> row_tier_;
  bool rows_are_shared_;
  std::unique_ptr<SquareTier<T>> square_tier_;
  Index set_aside_ = 0;  // chunk that the budget of the rows leaves memory for
  WorkingSetSelector selector_;
  Smo<T, double> smo_;
  Smo<T, T> quick_smo_;  // its own F in the precision of the rows
  const SmoLoops<T, double>& loops_;
  const OuterLoops<T>& outer_loops_;
  double last_gap_;           // at the beginning of the last round
  Index last_unbounded_ = 0;  // variables, when the chunk was last asked whether it is crowded
  double halved_gap_;         // when it was last half of what it had been
  Index idle_rounds_ = 0;     // since then: rounds whose predecessor did not reduce the gap
  // For the growth of the chunk. Moves are counted from when the gap was halved, or the unbounded
  // variables had become more, or the chunk had grown.
  double widest_gap_ = 0;     // since it was last halved
  Index moves_ = 0;           // of variables
  Index unbounded_then_ = 0;  // variables, when the count began
  double largest_value_ = 1;  // of the diagonal, at least 1
  std::vector<Shrunk> shrunk_;
  Extrapolation<double> extrapolation_;  // over the active places
  double amplified_ = 1.0;               // what it may have multiplied errors of F by
  // Where rows are coarse: by variable, what β has gained through them since F was last formed anew
  // (else empty); Σ|gain| since ever, and what it was when the variable's F was formed anew.
  std::vector<double> owed_;
  double owed_squares_ = 0.0, most_squares_ = 0.0;  // Σ of its squares; the largest before
  double returned_squares_ = 0.0;                   // for those that have been away, over-estimated
  double ever_owed_ = 0.0, exact_at_ = 0.0;         // exact_at_: what it was at the last reset
  std::vector<double> renewed_at_;
  std::vector<char> misses_some_;  // by variable: its F has not received all that is owed, or more
  std::vector<double> renewed_beta_;          // by variable; empty: not since the last reset
  double renewed_gap_;                        // the gap then
  std::vector<double> exact_beta_, exact_F_;  // by variable, at the last reset; empty: none
  bool may_shrink_;
  int checks_ = 0;  // of all variables, after some were dropped and the others were done
  bool is_early_ = false, has_dropped_early_ = false;  // see shrink_settled()
  double widest_early_gap_ = 0.0;
  // Multiply-adds: for each active variable since shrinking was last asked for, and for all that
  // were settled since the last shrinking.
  double column_work_ = 0.0, wasted_work_ = 0.0;
  Index full_row_evaluations_ = 0;
  Index past_square_evaluations_ = 0;
  Info info_;
};

extern template class DualSolver<float>;
extern template class DualSolver<double>;

}  // namespace kfu

// Rounds alongside deferred columns; see dual_solver.h for the contract.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "kfu/dual_solver.h"
#include "kfu/row_sums.h"

namespace kfu {

namespace {

// Active variables, in chunks, that are worth halving. Where there are fewer, or fewer violators
// than this part of the chunk in a half, all are looked at.
constexpr Index kLeastChunks = 3;
constexpr Index kFewViolators = 12;
constexpr Index kPieceColumns = 2048;  // of kept rows: what a thread may have to wait for
constexpr Index kHalfUnit = 256;       // columns: whole panels, and whole blocks of kept rows

}  // namespace

// The points at even places of the problem first, then those at odd ones.
template <class T>
void DualSolver<T>::deal_places() {
  const Index n_even = (n_ + 1) / 2;
  for (Index k = 0; k < n_; ++k)
    variable_[k] = !defers_ ? k : k < n_even ? 2 * k : 2 * (k - n_even) + 1;
  if (!defers_) return;
  const auto deal = [this](auto& values) {
    const auto old = values;
    for (Index k = 0; k < n_; ++k) values[k] = old[variable_[k]];
  };
  deal(point_);
  deal(group_);
  for (std::vector<double>* values : {&F_, &beta_, &lower_, &upper_, &linear_, &ridge_, &kink_})
    deal(*values);
}

template <class T>
bool DualSolver<T>::may_defer() const {
  return defers_ && !covers_all() && n_active_ >= 2 * kHalfUnit &&
         n_active_ >= kLeastChunks * square_tier_->capacity();
}

template <class T>
typename DualSolver<T>::Span DualSolver<T>::current() const {
  if (!deferred_) return {0, n_active_};
  const Index first = deferred_->columns.first(), last = deferred_->columns.last();
  return first == 0 ? Span{last, n_active_} : Span{0, first};
}

template <class T>
bool DualSolver<T>::is_current(Index k) const {
  return !deferred_ || k < deferred_->columns.first() || k >= deferred_->columns.last();
}

// Gives one half of the columns the rows of a batch, and defers the other. False, and nothing done,
// where rows cannot be prepared for both.
template <class T>
bool DualSolver<T>::update_in_halves(std::unique_ptr<Batch>& batch) {
  struct Step {
    std::shared_ptr<ColumnWork> work;
    Index first, last;
  };
  std::vector<Step> steps;
  const RowForm form = row_tier_->form();
  const auto add_kept = [&](const std::vector<KeptRow<T>>& rows, const std::vector<double>& delta,
                            Index last) {
    if (rows.empty()) return;
    steps.push_back({std::make_shared<RowSums<T>>(gram_.simd(), F_.data(), rows, delta,
                                                  settings_.threads, kPieceColumns),
                     0, last});
  };
  const auto add_computed = [&](const std::vector<Index>& points, const std::vector<double>& delta,
                                const std::vector<KeptRow<T>>& keep, Index first) {
    if (points.empty()) return true;
    std::shared_ptr<ColumnWork> work =
        gram_.accumulation(points.data(), delta.data(), static_cast<Index>(points.size()),
                           *columns_, F_.data(), {keep.data(), form});
    if (!work) return false;
    steps.push_back({std::move(work), first, n_active_});
    return true;
  };
  add_kept(batch->kept, batch->kept_delta, n_active_);
  for (const auto& entry : batch->short_rows) {
    const Extension& part = entry.second;
    add_kept(part.rows, part.delta, entry.first);
    if (!add_computed(part.points, part.delta, part.keep, entry.first)) return false;
  }
  if (!add_computed(batch->points, batch->delta, batch->keep, 0)) return false;

  first_is_deferred_ = !first_is_deferred_;
  const Index middle = (n_active_ / 2 + kHalfUnit - 1) / kHalfUnit * kHalfUnit;
  StagedColumns now(first_is_deferred_ ? middle : 0, first_is_deferred_ ? n_active_ : middle);
  // The chunk's block is not to be taken from rows that lack some of their columns.
  for (const Index variable : batch->inserted) row_tier_->set_valid(variable, 0);
  deferred_ = std::make_unique<Deferred>(std::move(batch), first_is_deferred_ ? 0 : middle,
                                         first_is_deferred_ ? middle : n_active_);
  for (const Step& step : steps) {
    now.add(step.work, step.first, step.last);
    deferred_->columns.add(step.work, step.first, step.last);
  }
  run_by_all(now, settings_.threads);
  return true;
}

template <class T>
void DualSolver<T>::finish_deferred() {
  if (!deferred_) return;
  run_by_all(deferred_->columns, settings_.threads);
  for (const std::vector<Index>* rows : {&deferred_->batch->extended, &deferred_->batch->inserted})
    for (const Index variable : *rows) row_tier_->set_valid(variable, n_active_);
  deferred_.reset();
}

template <class T>
template <class Work>
void DualSolver<T>::alongside(Work work, bool to_the_end) {
  if (settings_.threads == 1) {
    work();
    return;
  }
  std::exception_ptr failure;
  std::atomic<bool> is_over{false};
#pragma omp parallel num_threads(settings_.threads)
  {
    if (omp_get_thread_num() > 0) {
      deferred_->columns.work(omp_get_thread_num(), to_the_end ? nullptr : &is_over);
    } else {
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
      is_over = true;
      LapClock clock;
      if (to_the_end) deferred_->columns.work(0);
      clock.lap(info_.seconds_gradient);
    }
  }
  if (failure) std::rethrow_exception(failure);
}

template <class T>
bool DualSolver<T>::overlapped_round() {
  GroupEnds ends;
  std::vector<Index> entered;
  Moves moves;
  bool has_chosen = false;
  // All threads bring the chunk's block up to date together: it is the most of what is not F.
  alongside([&] { has_chosen = choose_from_current(ends, entered); }, false);
  if (has_chosen) {
    LapClock clock;
    prepare_rows(entered);
    clock.lap(info_.seconds_block);
    alongside([&] { moves = solve_chunk(ends); }, true);
  }
  LapClock clock;
  finish_deferred();
  clock.lap(info_.seconds_gradient);
  if (moves.places.empty()) return false;
  ++info_.overlapped_rounds;
  follow(moves);
  return true;
}

// Chooses the chunk from the current half; false where all variables have to be looked at.
template <class T>
bool DualSolver<T>::choose_from_current(GroupEnds& ends, std::vector<Index>& entered) {
  LapClock clock;
  ends = scan();
  const double gap = ends.gap(n_groups_, has_equality_);
  info_.gap = std::max(gap, other_gap_);
  other_gap_ = gap;
  bool has_chosen = !is_met(gap) && steps_left() > 0;
  if (is_early_ && early_stage_is_over(info_.gap)) has_chosen = false;
  if (is_too_rough(info_.gap)) has_chosen = false;
  if (has_chosen) {
    const GroupViolations violations = measure(ends);
    should_drop_ = may_shrink_ && should_shrink(ends, violations);
    has_chosen = !should_drop_;
  }
  if (has_chosen) {
    grow_chunk_if_crowded();
    WorkingSetEdit edit = select(ends);
    has_chosen = static_cast<Index>(edit.add.size()) * kFewViolators >= square_tier_->capacity();
    if (has_chosen) {
      note_gap();
      entered = edit_chunk(std::move(edit));
    }
  }
  clock.lap(info_.seconds_selection);
  return has_chosen;
}

template void DualSolver<float>::deal_places();
template bool DualSolver<float>::may_defer() const;
template typename DualSolver<float>::Span DualSolver<float>::current() const;
template bool DualSolver<float>::is_current(Index) const;
template bool DualSolver<float>::update_in_halves(std::unique_ptr<Batch>&);
template void DualSolver<float>::finish_deferred();
template bool DualSolver<float>::overlapped_round();
template bool DualSolver<float>::choose_from_current(GroupEnds&, std::vector<Index>&);
template void DualSolver<double>::deal_places();
template bool DualSolver<double>::may_defer() const;
template typename DualSolver<double>::Span DualSolver<double>::current() const;
template bool DualSolver<double>::is_current(Index) const;
template bool DualSolver<double>::update_in_halves(std::unique_ptr<Batch>&);
template void DualSolver<double>::finish_deferred();
template bool DualSolver<double>::overlapped_round();
template bool DualSolver<double>::choose_from_current(GroupEnds&, std::vector<Index>&);

}  // namespace kfu

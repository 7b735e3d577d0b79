// Shrinking of the active set; see dual_solver.h for the contract.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kfu/buffer.h"
#include "kfu/dual_solver.h"

namespace kfu {

namespace {

constexpr int kSettledRounds = 2;        // before a variable is dropped
constexpr double kFarther = 4.0;         // than violators are off on the average: see below
constexpr double kEarlyFarther = 0.1;    // the same at the early stage
constexpr double kRecomputed = 1.2;      // rows computed for each support vector, to drop early
constexpr double kFallen = 0.4;          // of its widest, the gap at which the early stage ends
constexpr double kWorthShrinking = 0.2;  // part of the active variables that must be settled
// What reordering costs, in multiply-adds: for each value of a kept row, and for each
// multiply-add behind a kernel value when a column is packed again.
constexpr double kMoveValue = 35.0;
constexpr double kPackColumn = 150.0;

constexpr Index kParallelPlaces = 10000;  // to reorder, that are worth starting threads for

/// values[k] becomes values[order[k]]; `scratch` has room for as many, and nothing is allocated.
template <class V>
void permute_one(const std::vector<Index>& order, Buffer<double>& scratch, std::vector<V>& values) {
  static_assert(sizeof(V) <= sizeof(double) && std::is_trivially_copyable<V>::value,
                "plain values");
  std::memcpy(scratch.data(), values.data(), order.size() * sizeof(V));
  const V* old = reinterpret_cast<const V*>(scratch.data());
  for (std::size_t k = 0; k < order.size(); ++k) values[k] = old[order[k]];
}

template <class... Vs>
void permute(const std::vector<Index>& order, Buffer<double>& scratch, std::vector<Vs>&... arrays) {
  (permute_one(order, scratch, arrays), ...);
}

}  // namespace

// A variable is settled if no other could pair with it, which is where it is farther than half the
// gap on the right side of θ; or if it is kFarther times farther than violators are on the wrong
// side on the average: a few outliers keep the ends apart long after F has come to rest nearly
// everywhere. (On the way to the solutions of seven sets, next to none of such became unbounded or
// changed its bound; the check of all variables finds them.) Those settled for kSettledRounds
// rounds leave once the work that went into their F since the last time would have paid for the
// reordering: at most twice the work of knowing beforehand.
//
// The early stage is that of cheap rows, which are computed again whenever their variable moves,
// until the gap has fallen to kFallen of its widest. Where variables move to and fro, a column left
// out for a while costs one value for each variable that has changed in the meantime, in place of
// one for each move. So a tenth of the violators' average suffices there (on cod-rna one in fifty
// of such is wrong), and all variables are looked at when the stage ends.
template <class T>
bool DualSolver<T>::should_shrink(const GroupEnds& ends, const GroupViolations& violations) {
  if (n_active_ <= 2 * square_tier_->capacity()) return false;
  Index leaving = count_settled(ends, violations);
  if (deferred_) {  // the other half as it was the last time
    const Index counted = leaving;
    leaving += other_settled_;
    other_settled_ = counted;
  } else {
    other_settled_ = leaving / 2;
  }
  for (const Index k : chunk_) leaving -= settled_rounds_[k] >= kSettledRounds;
  wasted_work_ += static_cast<double>(leaving) * column_work_;
  column_work_ = 0.0;
  if (static_cast<double>(leaving) < kWorthShrinking * static_cast<double>(n_active_)) return false;
  const double active = static_cast<double>(n_active_);
  const double staying = active - static_cast<double>(leaving);
  const double rows = static_cast<double>(row_tier_->count());
  const double columns = map_ ? 0.0 : kPackColumn * settings_.value_cost;  // w needs none
  const double cost = kMoveValue * (active * rows + staying) + staying * columns;
  if (wasted_work_ < cost) return false;
  wasted_work_ = 0.0;
  return true;
}

template <class T>
void DualSolver<T>::drop_settled() {
  std::vector<Index> order(static_cast<std::size_t>(n_active_)), last(order);
  std::vector<std::uint16_t> stays(static_cast<std::size_t>(n_active_ / 16 + 1), 0);
  Index remaining = 0, gone = 0;
  for (Index k = 0; k < n_active_; ++k) {  // no branch: both are written, one is kept
    const Index is_staying = settled_rounds_[k] < kSettledRounds || slot_of_[k] >= 0;
    stays[k / 16] |= static_cast<std::uint16_t>(is_staying << (k % 16));
    order[remaining] = last[gone] = k;
    remaining += is_staying;
    gone += 1 - is_staying;
  }
  std::copy(last.begin(), last.begin() + gone, order.begin() + remaining);
  shrunk_.push_back({remaining, n_active_, beta()});
  has_dropped_early_ = has_dropped_early_ || drops_early();
  apply_order(order);
  // Cheap values are worth less than the memory for more rows, where that has run out; not while
  // all columns are to come back soon.
  if (!is_early_ && !times_computed_.empty() && !row_tier_->has_room(1, remaining))
    row_tier_->recut(remaining);
  else
    row_tier_->part_columns(stays, n_active_, is_free_, gram_.simd());
  n_active_ = remaining;
  other_settled_ = 0;
  ++info_.shrinks;
}

template <class T>
bool DualSolver<T>::early_stage_is_over(double gap) {
  widest_early_gap_ = std::max(widest_early_gap_, gap);
  return gap <= kFallen * widest_early_gap_;
}

template <class T>
bool DualSolver<T>::early_stage_ends() {
  if (!is_early_) return false;
  is_early_ = !early_stage_is_over(info_.gap);
  return !is_early_ && has_dropped_early_;
}

template <class T>
bool DualSolver<T>::drops_early() const {
  if (!is_early_ || !has_equality_ || checks_ > 0) return false;
  const Index n_support = n_ - std::count(beta_.begin(), beta_.end(), 0.0);
  return static_cast<double>(info_.cache_misses) > kRecomputed * static_cast<double>(n_support);
}

// Brings settled_rounds_ of the current places up to date; returns how many are kSettledRounds or
// more.
template <class T>
Index DualSolver<T>::count_settled(const GroupEnds& ends, const GroupViolations& violations) {
  const double farther = drops_early() ? kEarlyFarther : kFarther;
  double far[kMostGroups] = {};
  for (int g = 0; g < n_groups_ && has_equality_; ++g) {
    const Violations& found = violations.of[g];
    const double mean = found.count > 0 ? found.sum / static_cast<double>(found.count) : 0.0;
    far[g] = 0.5 * pair_gap(ends.of[g]);
    if (checks_ == 0) far[g] = std::min(far[g], farther * mean);
  }
  const Span span = current();
  if (n_groups_ == 1)
    return outer_loops_.count_settled(satisfaction_.data() + span.first, far[0],
                                      settled_rounds_.data() + span.first, kSettledRounds,
                                      span.last - span.first);
  Index count = 0;
  for (Index k = span.first; k < span.last; ++k) {
    const bool is_settled = satisfaction_[k] > far[static_cast<int>(group_[k])];
    settled_rounds_[k] = is_settled ? settled_rounds_[k] + 1 : 0;
    count += settled_rounds_[k] >= kSettledRounds;
  }
  return count;
}

template <class T>
void DualSolver<T>::apply_order(const std::vector<Index>& order) {
  extrapolation_.forget();
  Buffer<double> scratch[2] = {Buffer<double>(n_active_), Buffer<double>(n_active_)};
#pragma omp parallel sections num_threads(settings_.threads) if (n_active_ > kParallelPlaces)
  {
#pragma omp section
    permute(order, scratch[0], variable_, point_, slot_of_, F_, beta_, lower_, upper_);
#pragma omp section
    permute(order, scratch[1], up_mask_, low_mask_, linear_, ridge_, kink_, group_, diagonal_,
            settled_rounds_);
  }
  for (std::size_t k = 0; k < order.size(); ++k)
    if (slot_of_[k] >= 0) chunk_[slot_of_[k]] = static_cast<Index>(k);
  square_tier_->set_places(chunk_);
  if (columns_) columns_->assign(0, point_.data(), static_cast<Index>(order.size()));
}

// Brings F of the dropped variables up to date and makes all variables active. Kept rows get the
// columns they lack only if rounds are sure to follow: that is fresh memory.
template <class T>
void DualSolver<T>::unshrink(bool goes_on) {
  column_work_ = wasted_work_ = 0.0;
  std::fill(settled_rounds_.begin(), settled_rounds_.end(), 0);
  n_active_ = n_;
  extrapolation_.forget();
  if (map_) {
    recompute_linear_gradient();
    shrunk_.clear();
    return;
  }
  const Index first = shrunk_.empty() ? n_ : shrunk_.back().first;
  for (Index k = first; k < n_ && !misses_some_.empty(); ++k) misses_some_[variable_[k]] = 1;
  if (first < n_) returned_squares_ = std::max(returned_squares_, usual_squares());
  // From the inside out, so that rows grow without gaps.
  for (auto part = shrunk_.rbegin(); part != shrunk_.rend(); ++part) {
    std::vector<Index> points;
    std::vector<double> delta, kept_delta;
    std::vector<KeptRow<T>> rows, kept;
    for (Index k = 0; k < n_; ++k) {
      const double gained = beta_[k] - part->beta[variable_[k]];
      if (gained == 0.0) continue;
      F_[k] += k >= part->first && k < part->last ? ridge_[k] * gained : 0.0;
      const KeptRow<T> row = row_tier_->find(variable_[k]);
      const Index valid = row ? row_tier_->valid(variable_[k]) : 0;
      if (valid >= part->last) {
        owe_returned(gained);
        kept.push_back(row);
        kept_delta.push_back(gained);
        continue;
      }
      points.push_back(point_[k]);
      delta.push_back(gained);
      const bool grows =
          goes_on && row && valid == part->first && row_tier_->room(variable_[k]) >= part->last;
      rows.push_back(grows ? row : KeptRow<T>());
      if (rows.back()) row_tier_->set_valid(variable_[k], part->last);
    }
    add_kept_rows(kept, kept_delta, part->first, part->last);
    gram_.accumulate(points.data(), delta.data(), static_cast<Index>(points.size()), 1, *columns_,
                     part->first, part->last, F_.data(), n_, {rows.data(), row_tier_->form()});
    full_row_evaluations_ += static_cast<Index>(points.size()) * (part->last - part->first);
  }
  shrunk_.clear();
}

template bool DualSolver<float>::early_stage_ends();
template bool DualSolver<double>::early_stage_ends();
template bool DualSolver<float>::drops_early() const;
template bool DualSolver<double>::drops_early() const;
template bool DualSolver<float>::early_stage_is_over(double);
template bool DualSolver<double>::early_stage_is_over(double);
template bool DualSolver<float>::should_shrink(const GroupEnds&, const GroupViolations&);
template bool DualSolver<double>::should_shrink(const GroupEnds&, const GroupViolations&);
template void DualSolver<float>::drop_settled();
template void DualSolver<double>::drop_settled();
template Index DualSolver<float>::count_settled(const GroupEnds&, const GroupViolations&);
template Index DualSolver<double>::count_settled(const GroupEnds&, const GroupViolations&);
template void DualSolver<float>::apply_order(const std::vector<Index>&);
template void DualSolver<double>::apply_order(const std::vector<Index>&);
template void DualSolver<float>::unshrink(bool);
template void DualSolver<double>::unshrink(bool);

}  // namespace kfu

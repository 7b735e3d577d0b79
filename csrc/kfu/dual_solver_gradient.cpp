// How F of the active variables follows β: rows of those that moved, kept or formed, and steps
// along earlier differences; see dual_solver.h for the contract.
#include <algorithm>
#include <cmath>

#include "kfu/dual_solver.h"
#include "kfu/row_sums.h"

namespace kfu {

namespace {

// In multiply-adds: the function behind a kernel value, and reading a value of a kept row.
constexpr double kFunctionCost = 16.0;
constexpr double kReadValue = 8.0;
// For rows of cheap values: getting fresh memory for a value and giving it back, and reading one
// that is kept as it is. A row is kept when that would have saved as much before.
constexpr double kFreshValue = 400.0;
constexpr double kReadFloating = 14.0;
// Variables that may need a row of their own when β is extrapolated, as part of those a round
// moves.
constexpr double kMostStopped = 0.1;
// What extrapolation may multiply the rounding errors of F by, all in all: they are far below the
// 1e-10 that the certificate allows for.
constexpr double kMostAmplified = 1e3;

double sum_of_squares(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return sum;
}

}  // namespace

template <class T>
void DualSolver<T>::initialise_gradient(const std::vector<double>* gradient) {
  Moves start;
  for (Index k = 0; k < n_; ++k)
    if (beta_[k] != 0.0) {
      start.places.push_back(k);
      start.delta.push_back(beta_[k]);
    }
  if (start.places.empty()) return;
  if (gradient == nullptr) {
    update_gradient(start);
    return;
  }
  for (Index k = 0; k < n_; ++k) F_[k] = (*gradient)[variable_[k]];
  note_exact(*gradient);
  if (map_) {
    std::vector<Index> points;
    for (const Index k : start.places) points.push_back(point_[k]);
    map_->add(points.data(), start.delta.data(), static_cast<Index>(points.size()));
  }
}

template <class T>
bool DualSolver<T>::extrapolation_is_due(Index moved) {
  if (!selector_.adapts() || map_ || covers_all()) return false;
  if (n_unbounded_ <= square_tier_->capacity()) return false;
  return extrapolation_.is_due(moved, n_unbounded_);
}

template <class T>
void DualSolver<T>::extrapolate(Index moved) {
  const DescentView<double> view{n_active_,     beta_.data(), lower_.data(),
                                 upper_.data(), kink_.data(), group_.data(),
                                 F_.data(),     n_groups_,    has_equality_};
  if (extrapolation_.propose(view, static_cast<Index>(kMostStopped * static_cast<double>(moved))) &&
      amplified_ * extrapolation_.amplification() <= kMostAmplified) {
    const std::vector<double> old_beta = beta_, old_F = F_;
    const std::vector<double> old_owed = owed_;
    const double old_squares = owed_squares_;
    extrapolation_.advance(F_.data());
    extrapolation_.advance_extra(owed_);
    owed_squares_ = sum_of_squares(owed_);
    for (std::size_t v = 0; v < owed_.size(); ++v) ever_owed_ += std::fabs(owed_[v] - old_owed[v]);
    std::copy(extrapolation_.target().begin(), extrapolation_.target().end(), beta_.begin());
    for (Index k = 0; k < n_active_; ++k)
      if (beta_[k] != old_beta[k]) note_beta(k);
    if (!extrapolation_.stopped().empty())
      update_gradient({extrapolation_.stopped(), extrapolation_.stopped_delta()});
    if (objective_change(view, old_beta, old_F) < 0.0) {
      amplified_ *= extrapolation_.amplification();
      ++info_.extrapolations;
    } else {
      std::copy(old_F.begin(), old_F.end(), F_.begin());
      owed_ = old_owed;
      owed_squares_ = old_squares;
      for (Index k = 0; k < n_active_; ++k) {
        if (beta_[k] == old_beta[k]) continue;
        beta_[k] = old_beta[k];
        note_beta(k);
      }
    }
  }
  extrapolation_.remember(view, owed_);
}

// F follows a move of a variable by its kept row.
template <class T>
void DualSolver<T>::owe(Index variable, double delta) {
  if (row_tier_->form() != RowForm::coarse) return;
  const double before = owed_[variable], after = before + delta;
  owed_[variable] = after;
  owed_squares_ += after * after - before * before;
  ever_owed_ += std::fabs(delta);
}

// The same, by a row of so many columns: the others receive values as they are.
template <class T>
void DualSolver<T>::owe_short(Index variable, double delta, Index valid) {
  if (row_tier_->form() != RowForm::coarse || valid == 0) return;
  owe(variable, delta);
  for (Index k = valid; k < n_active_; ++k) misses_some_[variable_[k]] = 1;
  extrapolation_.forget();  // what F is off by is no longer what is owed, for all
}

// Variables that have been away receive what another has gained meanwhile by its kept row.
template <class T>
void DualSolver<T>::owe_returned(double gained) {
  if (row_tier_->form() != RowForm::coarse) return;
  returned_squares_ += gained * gained;
  ever_owed_ += std::fabs(gained);
}

template <class T>
void DualSolver<T>::recompute_linear_gradient() {
  map_->apply(point_.data(), n_active_, F_.data());
  for (Index k = 0; k < n_active_; ++k) F_[k] += linear_[k] + ridge_[k] * beta_[k];
}

// The subproblem's own gradient is the whole gradient where the chunk covers all, unless F is a sum
// of rounded values: it has to be one of them throughout.
template <class T>
void DualSolver<T>::follow(const Moves& moves) {
  LapClock clock;
  const Index moved = static_cast<Index>(moves.places.size());
  if (covers_all() && row_tier_->form() != RowForm::fixed) {
    for (std::size_t s = 0; s < chunk_.size(); ++s) F_[chunk_[s]] = chunk_F_[s];
  } else if (extrapolation_is_due(moved)) {
    update_gradient(moves);
    extrapolate(moved);
  } else if (moved > 0 && may_defer()) {
    std::unique_ptr<Batch> batch = make_batch(moves);
    if (!update_in_halves(batch)) update_now(*batch);
  } else {
    update_gradient(moves);
  }
  clock.lap(info_.seconds_gradient);
  count_evaluations();
  info_.n_active = n_active_;
}

// F of the active variables gains Σ delta·K(places, ·).
template <class T>
void DualSolver<T>::update_gradient(const Moves& moves) {
  if (moves.places.empty()) return;
  if (!map_) {
    update_now(*make_batch(moves));
    return;
  }
  std::vector<Index> points;
  for (const Index k : moves.places) points.push_back(point_[k]);
  map_->add(points.data(), moves.delta.data(), static_cast<Index>(points.size()));
  recompute_linear_gradient();
  column_work_ += settings_.value_cost;
}

template <class T>
std::unique_ptr<typename DualSolver<T>::Batch> DualSolver<T>::make_batch(const Moves& moves) {
  auto made = std::make_unique<Batch>();
  Batch& batch = *made;
  std::vector<Index> new_places;
  Index n_homeless = 0;  // rows that are short, and stay so: the rest is computed each time
  const Index n_moved = static_cast<Index>(moves.places.size());
  for (Index c = 0; c < n_moved; ++c) {
    const Index k = moves.places[c];
    const double delta = moves.delta[c];
    F_[k] += ridge_[k] * delta;
    const KeptRow<T> row = row_tier_->find(variable_[k]);
    if (!row) {
      new_places.push_back(k);
      batch.delta.push_back(delta);
    } else if (row_tier_->valid(variable_[k]) < n_active_) {
      Extension& part = batch.short_rows[row_tier_->valid(variable_[k])];
      const bool has_room = row_tier_->room(variable_[k]) >= n_active_;
      part.points.push_back(point_[k]);
      part.delta.push_back(delta);
      owe_short(variable_[k], delta, row_tier_->valid(variable_[k]));
      part.rows.push_back(row);
      part.keep.push_back(has_room ? row : KeptRow<T>());
      if (has_room)
        batch.extended.push_back(variable_[k]);
      else
        ++n_homeless;
    } else {
      batch.kept.push_back(row);
      batch.kept_delta.push_back(delta);
      owe(variable_[k], delta);
    }
  }
  Index n_missed = static_cast<Index>(new_places.size()) + n_homeless;
  const auto empty = batch.short_rows.find(0);  // memory of a row, but no values
  if (empty != batch.short_rows.end())
    for (const KeptRow<T>& row : empty->second.keep) n_missed += static_cast<bool>(row);
  info_.cache_hits += n_moved - n_missed;
  info_.cache_misses += n_missed;
  column_work_ += static_cast<double>(n_missed) * (settings_.value_cost + kFunctionCost) +
                  static_cast<double>(n_moved - n_missed) * kReadValue;
  // Shared rows of bounded variables are worth keeping while there is room: other solvers may want
  // them.
  const bool is_full = !row_tier_->has_room(static_cast<Index>(new_places.size()), n_active_);
  if (displace_ == Displace::settled_only && (!rows_are_shared_ || is_full))
    row_tier_->offer_settled(is_free_);
  // Room for all columns, which come back in the end, unless unbounded variables are too many.
  const Index still = std::max<Index>(n_unbounded_ - row_tier_->count(), 0);
  const Index room = row_tier_->has_room(still, n_) ? n_ : n_active_;
  for (const Index k : new_places) {
    batch.points.push_back(point_[k]);
    const bool worth = is_free(k) || displace_ == Displace::any || rows_are_shared_;
    batch.keep.push_back(worth ? row_tier_->insert(variable_[k], n_active_, is_free_, displace_,
                                                   has_earned_row(variable_[k]), room)
                               : KeptRow<T>());
    if (batch.keep.back()) batch.inserted.push_back(variable_[k]);
  }
  row_tier_->populate();
  std::vector<KeptRow<T>>& keep = batch.keep;
  if (displace_ == Displace::any)  // a small tier may have displaced a row of this very batch
    for (std::size_t c = 0; c < keep.size(); ++c)
      for (std::size_t later = c + 1; later < keep.size() && keep[c]; ++later)
        if (keep[later] == keep[c]) keep[c] = {};
  for (std::vector<Index>* rows : {&batch.extended, &batch.inserted}) {  // less those displaced
    const auto is_gone = [this](Index variable) { return !row_tier_->has(variable); };
    rows->erase(std::remove_if(rows->begin(), rows->end(), is_gone), rows->end());
  }
  for (const auto& part : batch.short_rows)
    full_row_evaluations_ +=
        static_cast<Index>(part.second.points.size()) * (n_active_ - part.first);
  full_row_evaluations_ += static_cast<Index>(batch.points.size()) * n_active_;
  return made;
}

template <class T>
void DualSolver<T>::update_now(const Batch& batch) {
  add_kept_rows(batch.kept, batch.kept_delta, 0, n_active_);
  for (const auto& part : batch.short_rows) extend_kept_rows(part.second, part.first);
  gram_.accumulate(batch.points.data(), batch.delta.data(), static_cast<Index>(batch.points.size()),
                   1, *columns_, 0, n_active_, F_.data(), n_,
                   {batch.keep.data(), row_tier_->form()});
  for (const Index variable : batch.extended) row_tier_->set_valid(variable, n_active_);
}

template <class T>
void DualSolver<T>::add_kept_rows(const std::vector<KeptRow<T>>& rows,
                                  const std::vector<double>& delta, Index first, Index last) {
  add_rows_in_shares(gram_.simd(), F_.data(), rows, delta, first, last, settings_.threads);
}

// Kept rows that have fewer columns than are active: use what is there, compute the rest.
template <class T>
void DualSolver<T>::extend_kept_rows(const Extension& part, Index valid) {
  const Index count = static_cast<Index>(part.points.size());
  add_kept_rows(part.rows, part.delta, 0, valid);
  gram_.accumulate(part.points.data(), part.delta.data(), count, 1, *columns_, valid, n_active_,
                   F_.data(), n_, {part.keep.data(), row_tier_->form()});
}

// Whether fresh memory may be got for a row that is about to be computed.
template <class T>
bool DualSolver<T>::has_earned_row(Index variable) {
  if (times_computed_.empty()) return true;
  const double saved = settings_.value_cost + kFunctionCost - kReadFloating;
  if (static_cast<double>(times_computed_[variable]) * saved >= kFreshValue) return true;
  ++times_computed_[variable];
  return false;
}

template void DualSolver<float>::initialise_gradient(const std::vector<double>*);
template void DualSolver<float>::extrapolate(Index);
template void DualSolver<float>::owe(Index, double);
template void DualSolver<float>::owe_short(Index, double, Index);
template void DualSolver<float>::owe_returned(double);
template void DualSolver<float>::recompute_linear_gradient();
template void DualSolver<float>::add_kept_rows(const std::vector<KeptRow<float>>&,
                                               const std::vector<double>&, Index, Index);
template void DualSolver<float>::extend_kept_rows(const Extension&, Index);
template bool DualSolver<float>::has_earned_row(Index);
template bool DualSolver<float>::extrapolation_is_due(Index);
template void DualSolver<float>::follow(const Moves&);
template void DualSolver<float>::update_gradient(const Moves&);
template void DualSolver<float>::update_now(const Batch&);
template std::unique_ptr<typename DualSolver<float>::Batch> DualSolver<float>::make_batch(
    const Moves&);
template void DualSolver<double>::initialise_gradient(const std::vector<double>*);
template void DualSolver<double>::extrapolate(Index);
template void DualSolver<double>::owe(Index, double);
template void DualSolver<double>::owe_short(Index, double, Index);
template void DualSolver<double>::owe_returned(double);
template void DualSolver<double>::recompute_linear_gradient();
template void DualSolver<double>::add_kept_rows(const std::vector<KeptRow<double>>&,
                                                const std::vector<double>&, Index, Index);
template void DualSolver<double>::extend_kept_rows(const Extension&, Index);
template bool DualSolver<double>::has_earned_row(Index);
template bool DualSolver<double>::extrapolation_is_due(Index);
template void DualSolver<double>::follow(const Moves&);
template void DualSolver<double>::update_gradient(const Moves&);
template void DualSolver<double>::update_now(const Batch&);
template std::unique_ptr<typename DualSolver<double>::Batch> DualSolver<double>::make_batch(
    const Moves&);

}  // namespace kfu

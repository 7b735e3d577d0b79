#include "kfu/dual_solver.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
// Values dearer than this are fetched from kept rows for the chunk's block; others are computed, as
// a row has to be read whole to fetch some of it.
constexpr double kGatherValue = 200.0;  // multiply-adds
// A subproblem is solved to this part of the gap: more steps would be undone by the next chunk.
constexpr double kInnerGap = 0.3;
constexpr Index kInnerStepsPerSlot = 100;
// The gap a subproblem with a float32 gradient may be solved to, for values of K up to 1.
constexpr double kLeastFloatGap = 1e-5;
constexpr double kSweep = 0.5;  // unbounded variables that move between two snapshots, as a part
// Rounds that did not reduce the gap, since it was last halved, before float64 is used throughout.
constexpr Index kIdleRounds = 40;
// The limit nobody asked for, LIBSVM's: badly scaled data would otherwise seem to hang.
constexpr Index kMostSteps = 10000000;
constexpr Index kMostStepsPerPoint = 100;
constexpr int kMostChecks = 3;  // of all variables, before none is dropped any more; see checks_

// Whether columns may be deferred. Where values are cheap, or rows sparse, it gains nothing:
// choosing from a half costs as many rounds as threads would otherwise wait for.
bool is_worth_deferring(const char* layout, const SolverSettings& settings) {
  return settings.working_set == WorkingSetRule::svmfu && settings.value_cost >= kCheapValue &&
         std::strcmp(layout, "dense") == 0;
}

}  // namespace

template <class T>
DualSolver<T>::DualSolver(const Gram<T>& gram, const DualProblem& problem,
                          const std::vector<double>& beta, const std::vector<double>* gradient,
                          const SolverSettings& settings, std::unique_ptr<LinearMap> linear,
                          const SharedRows<T>& shared)
    : gram_(gram),
      settings_(settings),
      n_(problem.size()),
      n_active_(n_),
      has_equality_(problem.has_equality),
      n_groups_(problem.n_groups()),
      displace_(settings.working_set == WorkingSetRule::svmfu ? Displace::settled_only
                                                              : Displace::any),
      variable_(n_),
      point_(problem.points),
      slot_of_(n_, -1),
      F_(problem.linear),
      beta_(beta),
      lower_(problem.lower),
      upper_(problem.upper),
      linear_(problem.linear),
      ridge_(problem.ridge.empty() ? std::vector<double>(n_, 0.0) : problem.ridge),
      kink_(problem.kink.empty() ? std::vector<double>(n_, 0.0) : problem.kink),
      diagonal_(n_),
      up_mask_(n_),
      low_mask_(n_),
      satisfaction_(n_),
      group_(problem.group.empty() ? std::vector<char>(n_, 0) : problem.group),
      settled_rounds_(n_, 0),
      is_free_(n_),
      defers_(is_worth_deferring(gram.layout(), settings) && linear == nullptr &&
              shared.tier == nullptr),
      map_(std::move(linear)),
      columns_(shared.columns),
      row_tier_(shared.tier),
      rows_are_shared_(row_tier_ != nullptr),
      selector_(settings.working_set),
      smo_(gram.simd(), settings.pair, problem.has_equality),
      quick_smo_(gram.simd(), settings.pair, problem.has_equality),
      loops_(smo_loops<T, double>(gram.simd())),
      outer_loops_(outer_loops<T>(gram.simd())),
      last_gap_(kInf),
      halved_gap_(kInf),
      extrapolation_(kSweep),
      renewed_at_(n_, 0.0),
      renewed_gap_(kInf),
      may_shrink_(settings.shrinking && settings.working_set == WorkingSetRule::svmfu &&
                  !rows_are_shared_) {
  std::vector<double> all(static_cast<std::size_t>(gram.size()));
  gram.diagonal(all.data());
  deal_places();
  for (Index k = 0; k < n_; ++k) {
    diagonal_[k] = all[point_[k]] + ridge_[k];
    note_beta(k);
    largest_value_ = std::max(largest_value_, diagonal_[k]);
  }
  if (!map_ && !columns_) {
    columns_ = gram.make_columns(n_);
    columns_->assign(0, point_.data(), n_);
  }
  build_tiers(chunk_capacity());
  is_early_ = may_shrink_ && !times_computed_.empty();
  if (row_tier_->form() == RowForm::coarse) {
    owed_.assign(static_cast<std::size_t>(n_), 0.0);
    misses_some_.assign(static_cast<std::size_t>(n_), 0);
  }
  initialise_gradient(gradient);
  info_.n_active = n_;
}

template <class T>
void DualSolver<T>::build_tiers(Index capacity) {
  if (square_tier_) past_square_evaluations_ += square_tier_->evaluations();
  for (const Index k : chunk_) slot_of_[k] = -1;
  const std::vector<Index> members = chunk_;
  chunk_.clear();
  if (!row_tier_) {
    // A chunk of all variables keeps no rows, and its block, whose values are not rounded, gives F.
    const RowForm form =
        capacity == n_ ? RowForm::floating : form_of_rows(gram_, settings_.value_cost);
    // The square tier may still grow, and takes its part of the budget from the start.
    const bool is_cheap = settings_.value_cost < kCheapValue;
    set_aside_ = chunk_to_provide_for(is_cheap);
    const double square = static_cast<double>(set_aside_) * static_cast<double>(set_aside_);
    double rest = map_ || capacity == n_ ? 0.0 : settings_.cache_bytes - square * sizeof(T);
    if (is_cheap && selector_.adapts())
      times_computed_.assign(static_cast<std::size_t>(n_), 0);
    else if (is_cheap)
      rest = std::min(rest, kCheapRowsBytes);
    row_tier_.reset(new RowTier<T>(n_, rest, settings_.threads, form));
  }
  // A block that grows may grow again: it gets memory for the largest that is provided for, which
  // has no pages where it is not used yet.
  Buffer<T> memory;
  if (square_tier_ && square_tier_->has_memory_for(capacity)) {
    memory = square_tier_->take_memory();
  } else if (square_tier_) {
    square_tier_.reset();  // before more is allocated
    memory.resize(SquareTier<T>::size_of_block(std::max(capacity, set_aside_)));
  }
  square_tier_.reset(new SquareTier<T>(gram_, capacity, *row_tier_,
                                       settings_.value_cost >= kGatherValue, settings_.threads,
                                       std::move(memory)));
  info_.chunk = capacity;
  moves_ = 0;
  if (members.empty()) return;
  std::vector<Index> slots, variables, points;
  std::vector<double> diagonal;
  for (const Index k : members) {
    slot_of_[k] = static_cast<Index>(slots.size());
    slots.push_back(slot_of_[k]);
    variables.push_back(variable_[k]);
    points.push_back(point_[k]);
    diagonal.push_back(diagonal_[k]);
  }
  chunk_ = members;
  square_tier_->assign(slots, variables, points, diagonal);
  square_tier_->set_places(chunk_);
}

template <class T>
void DualSolver<T>::note_beta(Index k) {
  up_mask_[k] = beta_[k] < upper_[k] ? up_slope(0.0, beta_[k], kink_[k]) : kInf;
  low_mask_[k] = beta_[k] > lower_[k] ? low_slope(0.0, beta_[k], kink_[k]) : -kInf;
  char& noted = is_free_[variable_[k]];
  n_unbounded_ += static_cast<Index>(is_free(k)) - static_cast<Index>(noted);
  noted = is_free(k);
}

template <class T>
GroupEnds DualSolver<T>::scan() const {
  GroupEnds found;
  for (Extremes& ends : found.of) ends = {kInf, -kInf, -1, -1};
  const auto look_at = [&](Index k, double F) {
    Extremes& ends = found.of[static_cast<int>(group_[k])];
    const double up = F + up_mask_[k], low = F + low_mask_[k];
    if (up < ends.up_value) ends.up_value = up, ends.up = k;
    if (low > ends.low_value) ends.low_value = low, ends.low = k;
  };
  const Span span = current();
  Index begin = span.first;
  if (n_groups_ == 1) {
    begin += (span.last - span.first) / kLoopPad * kLoopPad;
    Extremes& ends = found.of[0];
    ends = loops_.scan(F_.data() + span.first, up_mask_.data() + span.first,
                       low_mask_.data() + span.first, begin - span.first);
    if (ends.up >= 0) ends.up += span.first;
    if (ends.low >= 0) ends.low += span.first;
  }
  for (Index k = begin; k < span.last; ++k) look_at(k, F_[k]);
  for (std::size_t s = 0; s < chunk_.size() && deferred_; ++s)
    if (!is_current(chunk_[s])) look_at(chunk_[s], chunk_F_[s]);
  return found;
}

template <class T>
typename DualSolver<T>::GroupViolations DualSolver<T>::measure(const GroupEnds& ends) {
  GroupViolations found{};
  double theta[kMostGroups];
  for (int g = 0; g < n_groups_; ++g) theta[g] = ends.threshold(g, has_equality_);
  const auto satisfaction = [&](Index k, double F) {
    const double f = F - theta[static_cast<int>(group_[k])];
    return std::min(f + up_mask_[k], -(f + low_mask_[k]));
  };
  for (std::size_t s = 0; s < chunk_.size() && deferred_; ++s)
    if (!is_current(chunk_[s])) satisfaction_[chunk_[s]] = satisfaction(chunk_[s], chunk_F_[s]);
  const Span span = current();
  if (n_groups_ == 1) {
    found.of[0] = outer_loops_.satisfactions(
        F_.data() + span.first, up_mask_.data() + span.first, low_mask_.data() + span.first,
        theta[0], span.last - span.first, satisfaction_.data() + span.first);
    return found;
  }
  for (Index k = span.first; k < span.last; ++k) {
    satisfaction_[k] = satisfaction(k, F_[k]);
    if (!(satisfaction_[k] < 0.0)) continue;
    Violations& of = found.of[static_cast<int>(group_[k])];
    of.sum -= satisfaction_[k];
    ++of.count;
  }
  return found;
}

template <class T>
Status DualSolver<T>::round() {
  const bool was_deferred = deferred_ != nullptr;
  if (was_deferred && overlapped_round()) return Status::running;
  return full_round(was_deferred);
}

template <class T>
Index DualSolver<T>::steps_left() const {
  const Index limit = settings_.max_iterations > 0 ? settings_.max_iterations
                                                   : std::max(kMostSteps, kMostStepsPerPoint * n_);
  return limit - info_.iterations;
}

template <class T>
void DualSolver<T>::note_gap() {
  idle_rounds_ = info_.gap < 0.5 * halved_gap_ ? 0 : idle_rounds_ + (info_.gap >= last_gap_);
  if (idle_rounds_ == 0) halved_gap_ = info_.gap;
  note_progress();
  last_gap_ = info_.gap;
}

template <class T>
Status DualSolver<T>::full_round(bool is_retry) {
  LapClock clock;
  GroupEnds ends = scan();
  info_.gap = ends.gap(n_groups_, has_equality_);
  refresh_if_rough(ends);
  const bool is_done = is_met(info_.gap);
  const bool ends_early_stage = early_stage_ends();
  if ((ends_early_stage || is_done) && n_active_ < n_) {
    clock.lap(info_.seconds_selection);
    unshrink(!is_done);
    // Those that can still not pair with any may leave again, a few times.
    if (is_done) {
      may_shrink_ = ++checks_ < kMostChecks;
      is_early_ = false;
    }
    count_evaluations();
    ends = scan();
    info_.gap = ends.gap(n_groups_, has_equality_);
    clock.lap(info_.seconds_gradient);
  }
  if (is_done && mend_returned(ends)) {
    ends = scan();
    info_.gap = ends.gap(n_groups_, has_equality_);
  }
  if (is_met(info_.gap)) return Status::optimal;
  if (steps_left() <= 0) return Status::max_iterations;
  note_gap();
  other_gap_ = info_.gap;
  if (selector_.adapts()) {
    const GroupViolations violations = measure(ends);
    if (may_shrink_ && (is_retry ? should_drop_ : should_shrink(ends, violations))) {
      drop_settled();
      measure(ends = scan());
    }
    should_drop_ = false;
  }
  grow_chunk_if_crowded();
  const std::vector<Index> entered = edit_chunk(select(ends));
  clock.lap(info_.seconds_selection);
  if (info_.rounds > 0 && selector_.adapts()) prepare_rows(entered);
  clock.lap(info_.seconds_block);
  const Moves moves = solve_chunk(ends);
  follow(moves);
  return moves.places.empty() ? Status::stalled : Status::running;
}

template <class T>
void DualSolver<T>::count_evaluations() {
  info_.kernel_evaluations =
      full_row_evaluations_ + past_square_evaluations_ + square_tier_->evaluations();
}

template <class T>
WorkingSetEdit DualSolver<T>::select(const GroupEnds& ends) {
  const Span span = current();
  const WorkingSetView view{n_active_,
                            span.first,
                            span.last,
                            F_.data(),
                            up_mask_.data(),
                            low_mask_.data(),
                            satisfaction_.data(),
                            beta_.data(),
                            lower_.data(),
                            upper_.data(),
                            kink_.data(),
                            group_.data(),
                            n_groups_,
                            has_equality_,
                            ends,
                            settings_.tolerance,
                            square_tier_->capacity(),
                            chunk_,
                            slot_of_,
                            entered_};
  WorkingSetEdit edit = selector_.select(view);
  edit.add.resize(std::min(edit.add.size(), static_cast<std::size_t>(view.capacity)));
  return edit;
}

template <class T>
std::vector<Index> DualSolver<T>::edit_chunk(WorkingSetEdit edit) {
  std::sort(edit.add.begin(), edit.add.end());  // gathers then run forward through memory
  std::vector<Index> slots = edit.evict;
  std::sort(slots.begin(), slots.end());
  slots.resize(std::min(slots.size(), edit.add.size()));
  for (const Index s : slots) slot_of_[chunk_[s]] = -1;
  while (slots.size() < edit.add.size()) {
    slots.push_back(static_cast<Index>(chunk_.size()));
    chunk_.push_back(-1);
    entered_.push_back(0);
  }
  std::vector<Index> variables, points;
  std::vector<double> diagonal;
  for (std::size_t a = 0; a < edit.add.size(); ++a) {
    const Index k = edit.add[a];
    chunk_[slots[a]] = k;
    slot_of_[k] = slots[a];
    entered_[slots[a]] = info_.rounds;
    variables.push_back(variable_[k]);
    points.push_back(point_[k]);
    diagonal.push_back(diagonal_[k]);
  }
  square_tier_->assign(slots, variables, points, diagonal);
  square_tier_->set_places(chunk_);
  return slots;
}

// After the first round what enters the chunk violates and will move, and so will the unbounded
// variables: their rows are formed together, by all threads, instead of one by one on demand.
template <class T>
void DualSolver<T>::prepare_rows(const std::vector<Index>& entered) {
  std::vector<char> wanted(chunk_.size(), 0);
  for (const Index s : entered) wanted[s] = 1;
  std::vector<Index> slots;
  for (Index s = 0; s < static_cast<Index>(chunk_.size()); ++s)
    if (wanted[s] || is_free(chunk_[s])) slots.push_back(s);
  square_tier_->prepare(slots, settings_.threads);
}

// Whether the subproblem's own F may be of the rows' precision: the tolerance is far above its
// rounding, the gradient of all variables is not taken from it, and it has not failed before.
template <class T>
bool DualSolver<T>::may_use_float(double inner) const {
  return sizeof(T) == sizeof(float) && inner >= kLeastFloatGap * largest_value_ && !covers_all() &&
         idle_rounds_ < kIdleRounds;
}

template <class T>
typename DualSolver<T>::Moves DualSolver<T>::solve_chunk(const GroupEnds& ends) {
  const double gap = ends.gap(n_groups_, has_equality_);
  const double inner = covers_all() ? 0.9 * settings_.tolerance
                                    : std::max(0.5 * settings_.tolerance, kInnerGap * gap);
  const Index steps = std::min(
      steps_left(), kInnerStepsPerSlot * std::max<Index>(static_cast<Index>(chunk_.size()), 100));
  Shift shift{};
  for (int g = 0; g < n_groups_; ++g) shift.of[g] = ends.threshold(g, has_equality_);
  Moves moves;
  if (may_use_float(inner)) moves = solve_chunk(quick_smo_, inner, steps, shift);
  if (moves.places.empty()) moves = solve_chunk(smo_, inner, steps, Shift{});
  moves_ += static_cast<Index>(moves.places.size());
  return moves;
}

template <class T>
template <class G>
typename DualSolver<T>::Moves DualSolver<T>::solve_chunk(Smo<T, G>& smo, double inner, Index steps,
                                                         const Shift& shift) {
  LapClock clock;
  LocalProblem<T, G> local;
  load_chunk(local, shift);
  const SmoResult result = smo.solve(local, *square_tier_, inner, steps, covers_all());
  info_.iterations += result.iterations;
  info_.reductions += result.reductions;
  info_.extrapolations += result.extrapolations;
  ++info_.rounds;
  Moves moves = store_chunk(local, shift);
  clock.lap(info_.seconds_subproblem);
  return moves;
}

template <class T>
template <class G>
void DualSolver<T>::load_chunk(LocalProblem<T, G>& local, const Shift& shift) const {
  local.resize(static_cast<Index>(chunk_.size()), n_groups_);
  for (Index s = 0; s < local.m; ++s) {
    const Index k = chunk_[s];
    local.F[s] = static_cast<G>(chunk_F(s) - shift.of[static_cast<int>(group_[k])]);
    local.kink[s] = kink_[k];
    local.group[s] = group_[k];
    local.beta[s] = beta_[k];
    local.lower[s] = lower_[k];
    local.upper[s] = upper_[k];
    local.diagonal[s] = static_cast<T>(diagonal_[k]);
    local.update_mask(s);
  }
}

template <class T>
template <class G>
typename DualSolver<T>::Moves DualSolver<T>::store_chunk(const LocalProblem<T, G>& local,
                                                         const Shift& shift) {
  Moves moves;
  chunk_F_.resize(chunk_.size());
  for (Index s = 0; s < local.m; ++s) {
    const Index k = chunk_[s];
    chunk_F_[s] = static_cast<double>(local.F[s]) + shift.of[static_cast<int>(group_[k])];
    if (local.beta[s] == beta_[k]) continue;
    moves.places.push_back(k);
    moves.delta.push_back(local.beta[s] - beta_[k]);
    beta_[k] = local.beta[s];
    note_beta(k);
  }
  return moves;
}

template <class T>
std::vector<double> DualSolver<T>::beta() const {
  std::vector<double> out(static_cast<std::size_t>(n_));
  for (Index k = 0; k < n_; ++k) out[variable_[k]] = beta_[k];
  return out;
}

template <class T>
double DualSolver<T>::objective() {
  finish_deferred();
  double value = 0.0;
  for (Index k = 0; k < n_; ++k)
    value -= 0.5 * beta_[k] * (F_[k] + linear_[k]) + kink_[k] * std::fabs(beta_[k]);
  return value;
}

template <class T>
std::vector<double> DualSolver<T>::gradient() {
  std::vector<double> out;
  finish_deferred();
  if (n_active_ < n_) return out;
  out.resize(static_cast<std::size_t>(n_));
  for (Index k = 0; k < n_; ++k) out[variable_[k]] = F_[k];
  return out;
}

template <class T>
void DualSolver<T>::reset_gradient(const std::vector<double>& F) {
  finish_deferred();  // rows that are kept get their values
  shrunk_.clear();
  extrapolation_.forget();
  amplified_ = 1.0;
  n_active_ = n_;
  std::fill(settled_rounds_.begin(), settled_rounds_.end(), 0);
  for (Index k = 0; k < n_; ++k) F_[k] = F[variable_[k]];
  note_exact(F);
}

template class DualSolver<float>;
template class DualSolver<double>;

}  // namespace kfu

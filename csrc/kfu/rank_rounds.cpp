#include "kfu/rank_rounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kfu/row_sums.h"

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Index kPoints = 1024;          // of a block, unless a caller asks for another number
constexpr Index kLeastPoints = 128;      // 64 KiB, whatever the budget
constexpr Index kPairsPerPoint = 256;    // of a subproblem, at most
constexpr Index kStepsPerPoint = 400;    // of a subproblem, at most
constexpr double kSquareShare = 0.5;     // of the cache budget, at most, for the block
constexpr double kInnerViolation = 0.1;  // a subproblem is solved to this part of the violation
constexpr double kGatherValue = 200.0;   // multiply-adds; dearer values are fetched from kept rows
constexpr Index kPairsPerTask = 1 << 15;
constexpr double kFloatUp = 1.0 + 2e-7;  // makes a violation rounded to float32 an upper bound
constexpr double kReach = 10.0;  // times the worst violation: how far a near pair may be satisfied
constexpr Index kCandidatesPerPoint = 8;  // pairs of an octave that are looked at to choose points
constexpr int kOctaves = 8;               // violations below 2⁻⁸ of the worst do not choose points

// An order of pairs that favours none by its place: equal violations are common.
std::uint32_t scattered(Index p) { return static_cast<std::uint32_t>(p) * 2654435761u; }

}  // namespace

template <class T>
RankRounds<T>::RankRounds(const Gram<T>& gram, const RankProblem& problem, RankState& state,
                          const SolverSettings& settings, std::unique_ptr<LinearMap> linear)
    : gram_(gram),
      problem_(problem),
      state_(state),
      settings_(settings),
      map_(std::move(linear)),
      loops_(smo_loops<T, double>(gram.simd())),
      diagonal_(problem.points.size()),
      slot_(problem.points.size(), -1),
      is_busy_(problem.points.size(), 1) {
  const Index n = problem.n_points();
  const double share = settings.chunk > 0 ? 1.0 : kSquareShare;
  const Index affordable = static_cast<Index>(std::sqrt(share * settings.cache_bytes / sizeof(T)));
  const Index wanted = settings.chunk > 0 ? settings.chunk : std::min(n, kPoints);
  capacity_ = std::min({n, std::max<Index>(wanted, 2), std::max(kLeastPoints, affordable)});
  info_.chunk = capacity_;

  std::vector<double> all(static_cast<std::size_t>(gram.size()));
  gram.diagonal(all.data());
  for (Index i = 0; i < n; ++i) diagonal_[i] = all[problem.points[i]];
  const bool needs_rows = !covers_all() && !map_;
  if (needs_rows) {
    columns_ = gram.make_columns(n);
    columns_->assign(0, problem.points.data(), n);
  }
  const double square = static_cast<double>(capacity_ * capacity_) * sizeof(T);
  const bool keeps = needs_rows && settings.value_cost >= kCheapValue;
  rows_.reset(new RowTier<T>(n, keeps ? settings.cache_bytes - square : 0.0, settings.threads));
  block_.reset(new SquareTier<T>(gram, capacity_, *rows_,
                                 keeps && settings.value_cost >= kGatherValue, settings.threads));
  if (map_) {
    std::vector<Index> points;
    std::vector<double> coef;
    for (Index i = 0; i < n; ++i) {
      if (state.gamma[i] == 0.0) continue;
      points.push_back(problem.points[i]);
      coef.push_back(state.gamma[i]);
    }
    map_->add(points.data(), coef.data(), static_cast<Index>(points.size()));
  }
  if (covers_all()) {
    std::vector<std::int32_t> everything(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i) everything[i] = static_cast<std::int32_t>(i);
    place_points(everything);
  }
}

template <class T>
Status RankRounds<T>::round(double tolerance, Index allowed) {
  LapClock clock;
  info_.gap = scan();
  if (info_.gap <= tolerance) return Status::optimal;
  if (allowed <= 0) return Status::max_iterations;
  if (!covers_all()) choose_points(info_.gap, tolerance);
  collect_pairs();
  clock.lap(info_.seconds_selection);
  std::vector<Index> slots(chunk_.size());
  for (std::size_t s = 0; s < slots.size(); ++s) slots[s] = static_cast<Index>(s);
  block_->prepare(slots, settings_.threads);
  set_curvatures(*block_, pairs_);
  clock.lap(info_.seconds_block);

  std::vector<double> g(static_cast<std::size_t>(padded(block_->size())), 0.0);
  for (std::size_t s = 0; s < chunk_.size(); ++s) g[s] = state_.g[chunk_[s]];
  const double goal = std::max(0.5 * tolerance, kInnerViolation * info_.gap);
  const Index most = std::min(allowed, kStepsPerPoint * std::max<Index>(block_->size(), 100));
  info_.iterations += solve_pairs(*block_, loops_, goal, most, pairs_, g).steps;
  ++info_.rounds;
  clock.lap(info_.seconds_subproblem);
  const Index moved = store(g);
  clock.lap(info_.seconds_gradient);
  return moved == 0 ? Status::stalled : Status::running;
}

// The violation of a pair, −1 where it is settled: at a bound and satisfied, by `slack`.
template <class T>
float RankRounds<T>::violation_of(Index p, double& slack) const {
  const double F =
      state_.g[problem_.preferred[p]] - state_.g[problem_.other[p]] - problem_.target_of(p);
  const double alpha = state_.alpha[p], upper = problem_.upper[p];
  const bool is_settled = F < 0.0 ? alpha >= upper : alpha <= 0.0;
  slack = is_settled ? std::fabs(F) : 0.0;
  return is_settled ? -1.0f : static_cast<float>(std::fabs(F));
}

template <class T>
void RankRounds<T>::find_near_pairs() {
  reach_ = info_.rounds == 0 ? kInf : kReach * info_.gap;
  drift_ = 0.0;
  const Index m = problem_.n_pairs(), n_tasks = (m + kPairsPerTask - 1) / kPairsPerTask;
  std::vector<std::vector<Near>> found(static_cast<std::size_t>(n_tasks));
#pragma omp parallel for schedule(static) num_threads(settings_.threads) if (n_tasks > 1)
  for (Index b = 0; b < n_tasks; ++b) {
    const Index end = std::min(m, (b + 1) * kPairsPerTask);
    for (Index p = b * kPairsPerTask; p < end; ++p) {
      double slack;
      const float violation = violation_of(p, slack);
      if (slack <= reach_) found[b].push_back({p, violation});
    }
  }
  near_.clear();
  for (const std::vector<Near>& part : found) near_.insert(near_.end(), part.begin(), part.end());
}

// Violations of the pairs that may violate; returns the worst.
template <class T>
double RankRounds<T>::scan() {
  if (2.0 * drift_ >= reach_) {
    find_near_pairs();
  } else {
    const Index n_near = static_cast<Index>(near_.size());
#pragma omp parallel for schedule(static) num_threads(settings_.threads) if (n_near > kPairsPerTask)
    for (Index k = 0; k < n_near; ++k) {
      double slack;
      near_[k].violation = violation_of(near_[k].pair, slack);
    }
  }
  worst_ = -1;
  float worst = 0.0f;
  for (std::size_t k = 0; k < near_.size(); ++k)
    if (near_[k].violation > worst) worst = near_[k].violation, worst_ = static_cast<Index>(k);
  return kFloatUp * static_cast<double>(worst);
}

// Fills the chunk with points: those of the worst pair, of violating pairs octave by octave, each
// from where in the list the worst one is, up to half of the room; then those of pairs inside their
// box, which will move again; then those of more violating pairs.
template <class T>
void RankRounds<T>::choose_points(double worst, double tolerance) {
  std::vector<std::int32_t> wanted;
  std::vector<char> is_wanted(problem_.points.size(), 0);
  const auto want = [&](Index p, Index room) {
    const std::int32_t u = problem_.preferred[p], v = problem_.other[p];
    const Index n_new = !is_wanted[u] + !is_wanted[v];
    if (static_cast<Index>(wanted.size()) + n_new > room) return;
    for (const std::int32_t i : {u, v})
      if (!is_wanted[i]) is_wanted[i] = 1, wanted.push_back(i);
  };
  std::vector<Index> octaves[kOctaves + 1], inside;
  const std::size_t enough = static_cast<std::size_t>(kCandidatesPerPoint * capacity_);
  const float least = static_cast<float>(std::max(0.5 * tolerance, std::ldexp(worst, -kOctaves)));
  const Index n_near = static_cast<Index>(near_.size());
  for (Index k = 0; k < n_near; ++k) {
    const Near& near = near_[worst_ + k < n_near ? worst_ + k : worst_ + k - n_near];
    if (near.violation < 0.0f) continue;
    const double alpha = state_.alpha[near.pair];
    if (near.violation > least) {
      int octave = 0;
      for (double bar = 0.5 * worst; near.violation < bar && octave < kOctaves; bar *= 0.5)
        ++octave;
      if (octaves[octave].size() < enough) octaves[octave].push_back(near.pair);
    }
    if (alpha > 0.0 && alpha < problem_.upper[near.pair]) inside.push_back(near.pair);
  }
  for (const std::vector<Index>& octave : octaves)
    for (const Index p : octave) want(p, std::max<Index>(2, capacity_ / 2));
  for (const Index p : inside) want(p, capacity_);
  for (const std::vector<Index>& octave : octaves)
    for (const Index p : octave) want(p, capacity_);
  place_points(wanted);
}

// Makes the wanted points part of the chunk; those that are in it stay, those that are neither
// wanted nor in the way stay too.
template <class T>
void RankRounds<T>::place_points(const std::vector<std::int32_t>& wanted) {
  std::vector<char> stays(chunk_.size(), 0);
  std::vector<std::int32_t> entering;
  for (const std::int32_t i : wanted) {
    if (slot_[i] >= 0)
      stays[slot_[i]] = 1;
    else
      entering.push_back(i);
  }
  std::sort(entering.begin(), entering.end());
  std::vector<Index> slots, variables, points;
  std::vector<double> diagonal;
  std::size_t next = 0;
  for (const std::int32_t i : entering) {
    Index s = static_cast<Index>(chunk_.size());
    if (s < capacity_) {
      chunk_.push_back(i);
      stays.push_back(1);
    } else {
      while (stays[next]) ++next;
      s = static_cast<Index>(next++);
      slot_[chunk_[s]] = -1;
      chunk_[s] = i;
    }
    slot_[i] = static_cast<std::int32_t>(s);
    slots.push_back(s);
    variables.push_back(i);
    points.push_back(problem_.points[i]);
    diagonal.push_back(diagonal_[i]);
  }
  block_->assign(slots, variables, points, diagonal);
  block_->set_places(std::vector<Index>(chunk_.begin(), chunk_.end()));
}

// The pairs among the points of the chunk that may move: those inside their box and those that
// violate. If there are too many, the worst of them.
template <class T>
void RankRounds<T>::collect_pairs() {
  std::vector<Near> found;
  for (const Near& near : near_) {
    const Index p = near.pair;
    if (near.violation >= 0.0f && slot_[problem_.preferred[p]] >= 0 &&
        slot_[problem_.other[p]] >= 0)
      found.push_back(near);
  }
  const std::size_t most = static_cast<std::size_t>(kPairsPerPoint * capacity_);
  if (found.size() > most) {
    std::nth_element(found.begin(), found.begin() + most, found.end(),
                     [&](const Near& a, const Near& b) {
                       if (a.violation != b.violation) return a.violation > b.violation;
                       const std::uint32_t at = scattered(a.pair), bt = scattered(b.pair);
                       return at != bt ? at < bt : a.pair < b.pair;
                     });
    found.resize(most);
    std::sort(found.begin(), found.end(),
              [](const Near& a, const Near& b) { return a.pair < b.pair; });
  }
  pairs_.clear();
  for (const Near& near : found) {
    const Index p = near.pair;
    pairs_.push_back({slot_[problem_.preferred[p]], slot_[problem_.other[p]], p, state_.alpha[p],
                      problem_.upper[p], problem_.target_of(p), 1.0});
  }
}

// Hands the subproblem's α back. Returns the number of pairs that moved.
template <class T>
Index RankRounds<T>::store(const std::vector<double>& local_g) {
  std::vector<double> by_slot(chunk_.size(), 0.0);
  Index n_moved = 0;
  for (const LocalPair& p : pairs_) {
    const double delta = p.alpha - state_.alpha[p.pair];
    if (delta == 0.0) continue;
    ++n_moved;
    state_.alpha[p.pair] = p.alpha;
    by_slot[p.u] += delta;
    by_slot[p.v] -= delta;
  }
  std::vector<Index> moved;
  std::vector<double> deltas;
  for (std::size_t s = 0; s < chunk_.size(); ++s) {
    if (by_slot[s] == 0.0) continue;
    state_.gamma[chunk_[s]] += by_slot[s];
    moved.push_back(chunk_[s]);
    deltas.push_back(by_slot[s]);
  }
  const std::vector<double> before = state_.g;
  if (map_ || !covers_all())
    update_g(moved, deltas);
  else
    for (std::size_t s = 0; s < chunk_.size(); ++s) state_.g[chunk_[s]] = local_g[s];
  double furthest = 0.0;
  for (std::size_t i = 0; i < before.size(); ++i)
    furthest = std::max(furthest, std::fabs(state_.g[i] - before[i]));
  drift_ += furthest;
  info_.kernel_evaluations = info_.cache_misses * problem_.n_points() + block_->evaluations();
  return n_moved;
}

template <class T>
void RankRounds<T>::update_g(const std::vector<Index>& moved, const std::vector<double>& delta) {
  if (moved.empty()) return;
  if (!map_) return add_rows_of_K(moved, delta);
  std::vector<Index> points;
  for (const Index i : moved) points.push_back(problem_.points[i]);
  map_->add(points.data(), delta.data(), static_cast<Index>(points.size()));
  map_->apply(problem_.points.data(), problem_.n_points(), state_.g.data());
}

// Which rows of K may not be displaced: those of the chunk and of points with a pair inside its
// box.
template <class T>
void RankRounds<T>::mark_busy_points() {
  const Index n = problem_.n_points();
  const bool keeps_none = rows_->count() == 0 && !rows_->has_room(1, n);
  if (keeps_none || rows_->has_room(n - rows_->count(), n)) return;
  std::fill(is_busy_.begin(), is_busy_.end(), 0);
  for (const std::int32_t i : chunk_) is_busy_[i] = 1;
  for (Index p = 0; p < problem_.n_pairs(); ++p)
    if (state_.alpha[p] > 0.0 && state_.alpha[p] < problem_.upper[p])
      is_busy_[problem_.preferred[p]] = is_busy_[problem_.other[p]] = 1;
}

template <class T>
void RankRounds<T>::add_rows_of_K(const std::vector<Index>& moved,
                                  const std::vector<double>& delta) {
  std::vector<KeptRow<T>> kept, keep;
  std::vector<double> kept_delta, new_delta;
  std::vector<Index> points;
  mark_busy_points();
  for (std::size_t k = 0; k < moved.size(); ++k) {
    if (const KeptRow<T> row = rows_->find(moved[k])) {
      kept.push_back(row);
      kept_delta.push_back(delta[k]);
    }
  }
  // Before a new row takes the place of one.
  add_rows_in_shares(gram_.simd(), state_.g.data(), kept, kept_delta, 0, problem_.n_points(),
                     settings_.threads);
  if (!rows_->has_room(static_cast<Index>(moved.size()), problem_.n_points()))
    rows_->offer_settled(is_busy_);
  for (std::size_t k = 0; k < moved.size(); ++k) {
    if (rows_->find(moved[k])) continue;
    points.push_back(problem_.points[moved[k]]);
    new_delta.push_back(delta[k]);
    keep.push_back(rows_->insert(moved[k], problem_.n_points(), is_busy_, Displace::settled_only));
  }
  rows_->populate();
  info_.cache_hits += static_cast<Index>(kept.size());
  info_.cache_misses += static_cast<Index>(points.size());
  gram_.accumulate(points.data(), new_delta.data(), static_cast<Index>(points.size()), 1, *columns_,
                   0, problem_.n_points(), state_.g.data(), problem_.n_points(),
                   {keep.data(), RowForm::floating});
}

template class RankRounds<float>;
template class RankRounds<double>;

}  // namespace kfu

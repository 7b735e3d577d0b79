// How many variables a chunk has, and when it grows; see dual_solver.h for the contract.
#include <algorithm>
#include <cmath>

#include "kfu/dual_solver.h"

namespace kfu {

namespace {

constexpr double kCrowded = 0.7;       // part of unbounded variables at which the chunk grows
constexpr double kFull = 0.9;          // ... if there are at least this part of them in all
constexpr double kFits = 1.0;          // ... if all of them, at most this part, then have room
constexpr double kSteady = 1.03;       // ... and they are no longer becoming more, by this factor
constexpr Index kLargestChunk = 2048;  // of those chosen here; a caller may ask for more
// Where the unbounded variables do not fit, and the gap is not halved while the support moves so
// many times over, the chunk grows nevertheless (large C, K nearly singular). The larger it is, the
// dearer its block beside the rows: more sweeps are asked for.
constexpr Index kLargestSlowChunk = 4096;
double slow_sweeps(Index chunk) { return 3.0 * std::sqrt(static_cast<double>(chunk) / 1024.0); }
constexpr double kSquareShare = 0.5;  // of the cache budget, at most, for the square tier
constexpr Index kLeastChunk = 16;

}  // namespace

template <class T>
Index DualSolver<T>::chunk_capacity() const {
  if (settings_.working_set == WorkingSetRule::keerthi) return std::min<Index>(2, n_);
  // A chunk that was asked for may take the whole budget, but not more (nor less than kLeastChunk).
  const double share = settings_.chunk > 0 ? 1.0 : kSquareShare;
  const double affordable = std::sqrt(share * settings_.cache_bytes / sizeof(T));
  const Index most = std::max(kLeastChunk, static_cast<Index>(affordable));
  if (settings_.chunk > 0) return std::min({n_, std::max<Index>(settings_.chunk, 2), most});
  const Index wanted = selector_.default_chunk(n_);
  return std::min({n_, wanted, most});
}

// The size up to `limit` that an automatic chunk may grow to; at least what it has at first.
template <class T>
Index DualSolver<T>::largest_chunk(Index limit) const {
  const double affordable = std::sqrt(kSquareShare * settings_.cache_bytes / sizeof(T));
  const Index most = std::min({n_, limit, static_cast<Index>(affordable)});
  return std::max(most, chunk_capacity());
}

// The chunk that memory is set aside for when the tiers are first built: where values are cheap,
// rows have less use for it.
template <class T>
Index DualSolver<T>::chunk_to_provide_for(bool is_cheap) const {
  if (settings_.chunk > 0 || !selector_.adapts()) return chunk_capacity();
  return largest_chunk(is_cheap ? kLargestSlowChunk : kLargestChunk);
}

template <class T>
void DualSolver<T>::grow_chunk_if_crowded() {
  if (settings_.chunk > 0 || !selector_.adapts()) return;
  const Index capacity = square_tier_->capacity();
  const bool is_steady =
      static_cast<double>(n_unbounded_) <= kSteady * static_cast<double>(last_unbounded_);
  last_unbounded_ = n_unbounded_;
  Index crowd = 0;
  for (const Index k : chunk_) crowd += is_free(k);
  const bool is_crowded = static_cast<double>(crowd) > kCrowded * static_cast<double>(capacity) &&
                          static_cast<double>(n_unbounded_) > kFull * static_cast<double>(capacity);
  if (!is_crowded) return;
  const auto next_size = [&](Index limit) { return std::min(2 * capacity, largest_chunk(limit)); };
  const auto is_larger = [&](Index size) { return size > capacity + capacity / 4; };
  const Index larger = next_size(kLargestChunk);
  const bool would_fit = static_cast<double>(n_unbounded_) <= kFits * static_cast<double>(larger);
  if (is_larger(larger) && would_fit && is_steady) {
    build_tiers(larger);
    return;
  }
  const Index slow = next_size(rows_are_shared_ ? kLargestChunk : kLargestSlowChunk);
  if (!is_larger(slow) || n_unbounded_ <= capacity || !progress_is_slow()) return;
  if (slow > set_aside_ && !rows_are_shared_ && !map_) {
    const Index more = slow * slow - set_aside_ * set_aside_;
    if (!row_tier_->give_up(more * static_cast<Index>(sizeof(T)))) return;
    set_aside_ = slow;
  }
  build_tiers(slow);
}

// Counts moves anew where the gap has been halved, or while unbounded variables become more.
template <class T>
void DualSolver<T>::note_progress() {
  const bool is_halved = info_.gap < 0.5 * widest_gap_;
  widest_gap_ = is_halved ? info_.gap : std::max(widest_gap_, info_.gap);
  if (!is_halved && n_unbounded_ <= unbounded_then_ + unbounded_then_ / 10) return;
  moves_ = 0;
  unbounded_then_ = n_unbounded_;
}

template <class T>
bool DualSolver<T>::progress_is_slow() const {
  const double sweeps = slow_sweeps(square_tier_->capacity());
  const double moves = static_cast<double>(moves_);
  if (moves <= sweeps * static_cast<double>(n_unbounded_)) return false;
  const Index n_support = n_ - std::count(beta_.begin(), beta_.end(), 0.0);
  return moves > sweeps * static_cast<double>(n_support);
}

template Index DualSolver<float>::chunk_capacity() const;
template Index DualSolver<float>::largest_chunk(Index) const;
template Index DualSolver<float>::chunk_to_provide_for(bool) const;
template void DualSolver<float>::grow_chunk_if_crowded();
template void DualSolver<float>::note_progress();
template bool DualSolver<float>::progress_is_slow() const;
template Index DualSolver<double>::chunk_capacity() const;
template Index DualSolver<double>::largest_chunk(Index) const;
template Index DualSolver<double>::chunk_to_provide_for(bool) const;
template void DualSolver<double>::grow_chunk_if_crowded();
template void DualSolver<double>::note_progress();
template bool DualSolver<double>::progress_is_slow() const;

}  // namespace kfu

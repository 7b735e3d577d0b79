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
constexpr Index kLargestChunk = 2048;  // ... where rows leave memory for it from the start
// Where they need a little more, the chunk becomes as large as they need and some to spare: of
// fixed sizes 3072 and 4096 are dearer in every pair step. On cod-rna (2510 unbounded) 2816 take
// 68 rounds instead of 87, and 2 to 6 % less time. Beyond 3072 they would outgrow it still: with
// 3920 of them at the end (cod-rna, C = 3, γ = 1) growing to that took 17 % longer.
constexpr Index kLargestFittingChunk = 3072;
constexpr double kRoom = 1.1;     // of such a chunk, over the unbounded variables
constexpr Index kRoomStep = 256;  // its size is a multiple of this
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

// What the chunk may grow to where all unbounded variables then fit. At most twice as large: going
// from 1024 beyond 2048 at once took 4 to 24 % longer in short runs (mnist), and where the
// unbounded variables became fewer again; on cadata with C = 100 it would take a third less.
template <class T>
Index DualSolver<T>::fitting_chunk() const {
  const Index capacity = square_tier_->capacity();
  const Index doubled = std::min(2 * capacity, largest_chunk(kLargestChunk));
  const double unbounded = static_cast<double>(n_unbounded_);
  if (unbounded <= kFits * static_cast<double>(doubled) || rows_are_shared_) return doubled;
  const Index needed = static_cast<Index>(std::ceil(kRoom * unbounded / kRoomStep)) * kRoomStep;
  if (needed > std::min(2 * capacity, kLargestFittingChunk)) return doubled;
  return largest_chunk(needed);
}

// Takes the memory for a chunk from the rows; false where these have used it.
template <class T>
bool DualSolver<T>::provide_for(Index chunk) {
  if (chunk <= set_aside_ || rows_are_shared_ || map_) return true;
  const Index more = chunk * chunk - set_aside_ * set_aside_;
  if (!row_tier_->give_up(more * static_cast<Index>(sizeof(T)))) return false;
  set_aside_ = chunk;
  return true;
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
  const auto is_larger = [&](Index size) { return size > capacity + capacity / 4; };
  const Index fitting = fitting_chunk();
  const bool would_fit = static_cast<double>(n_unbounded_) <= kFits * static_cast<double>(fitting);
  if (is_larger(fitting) && would_fit && is_steady && provide_for(fitting)) {
    build_tiers(fitting);
    return;
  }
  const Index limit = rows_are_shared_ ? kLargestChunk : kLargestSlowChunk;
  const Index slow = std::min(2 * capacity, largest_chunk(limit));
  if (!is_larger(slow) || n_unbounded_ <= capacity || !progress_is_slow()) return;
  if (provide_for(slow)) build_tiers(slow);
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
template Index DualSolver<float>::fitting_chunk() const;
template bool DualSolver<float>::provide_for(Index);
template void DualSolver<float>::grow_chunk_if_crowded();
template void DualSolver<float>::note_progress();
template bool DualSolver<float>::progress_is_slow() const;
template Index DualSolver<double>::chunk_capacity() const;
template Index DualSolver<double>::largest_chunk(Index) const;
template Index DualSolver<double>::chunk_to_provide_for(bool) const;
template Index DualSolver<double>::fitting_chunk() const;
template bool DualSolver<double>::provide_for(Index);
template void DualSolver<double>::grow_chunk_if_crowded();
template void DualSolver<double>::note_progress();
template bool DualSolver<double>::progress_is_slow() const;

}  // namespace kfu

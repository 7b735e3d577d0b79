#include "kfu/square_tier.h"

#include <algorithm>
#include <cstring>

#include "kfu/pages.h"

namespace kfu {

namespace {

// Rows of a power-of-two length map to the same cache sets; one line more spreads them.
Index leading_dimension(Index capacity) {
  const Index ld = padded(capacity);
  return (ld & (ld - 1)) == 0 && ld >= 256 ? ld + kLoopPad : ld;
}

}  // namespace

template <class T>
SquareTier<T>::SquareTier(const Gram<T>& gram, Index capacity, RowTier<T>& row_tier, bool gathers,
                          int threads, Buffer<T> memory)
    : gram_(gram),
      row_tier_(row_tier),
      capacity_(capacity),
      ld_(leading_dimension(capacity)),
      panel_(std::max<Index>(gram.panel_width(), 16)),
      batch_(std::strcmp(gram.layout(), "csr") == 0 ? 16 : 12),
      gathers_(gathers),
      loops_(outer_loops<T>(gram.simd())),
      block_(std::move(memory)),
      columns_(gram.make_columns(capacity)),
      variables_(capacity, -1),
      points_(capacity, -1),
      born_(capacity, 0),
      filled_(capacity, 0),
      diagonal_(capacity, 0.0) {
  if (!has_memory_for(capacity_)) block_ = Buffer<T>(size_of_block(capacity_));
  prefault(block_.data(), size_of_block(capacity_) * static_cast<Index>(sizeof(T)), threads);
  for (Index s = 0; s < capacity_; ++s)  // the loops read padding: it must be finite
    std::fill(block_.data() + s * ld_ + capacity_, block_.data() + (s + 1) * ld_, T(0));
}

template <class T>
Index SquareTier<T>::size_of_block(Index capacity) {
  return capacity * leading_dimension(capacity);
}

template <class T>
void SquareTier<T>::assign(const std::vector<Index>& slots, const std::vector<Index>& variables,
                           const std::vector<Index>& points, const std::vector<double>& diagonal) {
  if (slots.empty()) return;
  ++edit_;
  edited_ = slots;
  edit_is_complete_ = false;
  std::vector<Index> appended, kept_slots, kept_points;
  for (std::size_t k = 0; k < slots.size(); ++k) {
    const Index s = slots[k];
    variables_[s] = variables[k];
    points_[s] = points[k];
    diagonal_[s] = diagonal[k];
    born_[s] = edit_;
    filled_[s] = 0;
    if (s < columns_->size()) {
      kept_slots.push_back(s);
      kept_points.push_back(points[k]);
    } else {
      appended.push_back(points[k]);  // the caller appends in increasing order of slots
    }
  }
  if (!kept_slots.empty())
    columns_->assign_slots(kept_slots.data(), kept_points.data(),
                           static_cast<Index>(kept_slots.size()));
  if (!appended.empty())
    columns_->assign(columns_->size(), appended.data(), static_cast<Index>(appended.size()));
  if (size_ == columns_->size()) return;
  size_ = columns_->size();
  for (Index s = 0; s < size_; ++s)  // slots not yet in use are padding of every row
    std::fill(block_.data() + s * ld_ + size_, block_.data() + s * ld_ + capacity_, T(0));
}

template <class T>
void SquareTier<T>::set_places(const std::vector<Index>& places) {
  places_ = places;
  last_place_ = places.empty() ? -1 : *std::max_element(places.begin(), places.end());
}

// The full row of the slot's variable, if the rectangular tier has all of it that the chunk needs.
template <class T>
KeptRow<T> SquareTier<T>::kept_row(Index slot) {
  if (!gathers_) return {};
  const KeptRow<T> full = row_tier_.find(variables_[slot]);
  const bool reaches =
      full && full.coarse == nullptr && row_tier_.valid(variables_[slot]) > last_place_;
  return reaches ? full : KeptRow<T>();
}

// row[c] for some columns c, or for [0, count) where `columns` is null.
template <class T>
void SquareTier<T>::gather_columns(const KeptRow<T>& full, const Index* columns, Index count,
                                   T* row) const {
  const auto column = [columns](Index k) { return columns == nullptr ? k : columns[k]; };
  if (full.fixed != nullptr) {
    for (Index k = 0; k < count; ++k)
      row[column(k)] = static_cast<T>(fixed_value(full.fixed, places_[column(k)]));
  } else {
    for (Index k = 0; k < count; ++k) row[column(k)] = full.floating[places_[column(k)]];
  }
}

template <class T>
void SquareTier<T>::gather(Index slot, const KeptRow<T>& full) {
  T* row = block_.data() + slot * ld_;
  if (lacks_last_edit_only(slot))
    gather_columns(full, edited_.data(), static_cast<Index>(edited_.size()), row);
  else
    gather_columns(full, nullptr, size_, row);
  row[slot] = static_cast<T>(diagonal_[slot]);
  filled_[slot] = edit_;
}

// Whether row `slot` was complete before the last edit.
template <class T>
bool SquareTier<T>::lacks_last_edit_only(Index slot) const {
  return filled_[slot] == edit_ - 1;
}

// The columns of the last edit, whose rows are complete, for a row that lacks nothing else.
template <class T>
void SquareTier<T>::copy_last_edit(Index slot) {
  T* row = block_.data() + slot * ld_;
  for (const Index c : edited_) row[c] = block_[c * ld_ + slot];
  filled_[slot] = edit_;
}

// The same for many rows, tile by tile: a line of a new row, and one of an old row, is met once.
template <class T>
void SquareTier<T>::copy_last_edit(const std::vector<Index>& slots, int threads) {
  constexpr Index side = 16, together = 4;  // entries of a tile; tiles of new rows side by side
  const Index n_tiles = (size_ + side - 1) / side;
  std::vector<std::uint16_t> rows(static_cast<std::size_t>(n_tiles), 0), columns(rows);
  const auto mark = [](std::vector<std::uint16_t>& bits, Index slot) {
    bits[slot / side] |= static_cast<std::uint16_t>(1u << (slot % side));
  };
  for (const Index s : slots) mark(rows, s);
  for (const Index s : edited_) mark(columns, s);
  const Index n_rows = static_cast<Index>(slots.size());
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (n_rows * size_ > 200000)
  for (Index first = 0; first < n_tiles; first += together)
    for (Index c = 0; c < n_tiles; ++c) {
      if (columns[c] == 0) continue;
      for (Index r = first; r < std::min(first + together, n_tiles); ++r)
        if (rows[r] != 0)
          loops_.mirror(block_.data(), ld_, r * side, rows[r], c * side, columns[c]);
    }
  for (const Index s : slots) filled_[s] = edit_;
}

template <class T>
void SquareTier<T>::prepare(const std::vector<Index>& slots, int threads) {
  std::vector<Index> kept_slots, missing, older;
  std::vector<KeptRow<T>> kept;
  for (const Index s : slots) {
    if (has(s)) continue;
    if (lacks_last_edit_only(s)) {
      older.push_back(s);
      continue;
    }
    const KeptRow<T> full = kept_row(s);
    if (!full) {
      missing.push_back(s);
    } else {
      kept_slots.push_back(s);
      kept.push_back(full);
    }
  }
  const Index count = static_cast<Index>(kept.size());
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (count * size_ > 200000)
  for (Index r = 0; r < count; ++r) gather(kept_slots[r], kept[r]);
  fill(missing.data(), static_cast<Index>(missing.size()));
  edit_is_complete_ = std::all_of(edited_.begin(), edited_.end(), [&](Index s) { return has(s); });
  const Index n_older = static_cast<Index>(older.size());
  if (!edit_is_complete_) return fill(older.data(), n_older);
  copy_last_edit(older, threads);
}

template <class T>
bool SquareTier<T>::all_complete(Index first, Index last) const {
  for (Index c = first; c < last; ++c)
    if (filled_[c] != edit_) return false;
  return true;
}

template <class T>
void SquareTier<T>::copy_transposed(Index slot, Index first, Index last) {
  T* row = block_.data() + slot * ld_;
  for (Index c = first; c < last; ++c) row[c] = block_[c * ld_ + slot];
}

template <class T>
void SquareTier<T>::evaluate(const std::vector<Index>& slots, Index first, Index last) {
  std::vector<Index> points(slots.size());
  std::vector<T*> out(slots.size());
  for (std::size_t r = 0; r < slots.size(); ++r) {
    points[r] = points_[slots[r]];
    out[r] = block_.data() + slots[r] * ld_ + first;
  }
  gram_.rows(points.data(), static_cast<Index>(points.size()), *columns_, first, last, out.data());
  evaluations_ += static_cast<Index>(slots.size()) * (last - first);
}

template <class T>
void SquareTier<T>::fill(const Index* ks, Index count) {
  std::vector<Index> missing;
  for (Index r = 0; r < count; ++r) {
    if (has(ks[r])) continue;
    const KeptRow<T> full = kept_row(ks[r]);
    if (edit_is_complete_ && lacks_last_edit_only(ks[r]))
      copy_last_edit(ks[r]);
    else if (full)
      gather(ks[r], full);
    else
      missing.push_back(ks[r]);
  }
  if (missing.empty()) return;

  Index run_first = -1;  // panels that need the kernel are evaluated in runs
  for (Index first = 0; first < size_; first += panel_) {
    const Index last = std::min(first + panel_, size_);
    bool known = true;
    for (const Index s : missing)
      for (Index c = first; c < last && known; ++c)
        known = filled_[s] > 0 && born_[c] <= filled_[s];
    const bool transposable = !known && all_complete(first, last);
    if (transposable)
      for (const Index s : missing) copy_transposed(s, first, last);
    const bool needed = !known && !transposable;
    if (needed && run_first < 0) run_first = first;
    if (!needed && run_first >= 0) {
      evaluate(missing, run_first, first);
      run_first = -1;
    }
  }
  if (run_first >= 0) evaluate(missing, run_first, size_);
  for (const Index s : missing) {
    block_[s * ld_ + s] = static_cast<T>(diagonal_[s]);
    filled_[s] = edit_;
  }
}

template class SquareTier<float>;
template class SquareTier<double>;

}  // namespace kfu

#include "kfu/row_tier.h"

#include <algorithm>
#include <cstdint>

#include "kfu/prefault.h"

namespace kfu {

namespace {

constexpr Index kSlabBytes = Index{16} << 20;
constexpr Index kLineBytes = 64;
constexpr Index kPrefaultBytes = Index{4} << 20;  // asked for at once: rows may stay few

}  // namespace

template <class T>
RowTier<T>::RowTier(Index n_variables, Index length, double bytes, int threads)
    : slot_of_(static_cast<std::size_t>(n_variables), -1), threads_(threads) {
  const Index line = kLineBytes / static_cast<Index>(sizeof(T));
  length_ = (std::max<Index>(length, 1) + line - 1) / line * line;
  const double row_bytes = static_cast<double>(length_) * sizeof(T);
  capacity_ = static_cast<Index>(
      std::min(static_cast<double>(n_variables), std::max(bytes, 0.0) / row_bytes));
  rows_per_slab_ = std::max<Index>(
      1, std::min(capacity_, static_cast<Index>(static_cast<double>(kSlabBytes) / row_bytes)));
}

// Giving a gigabyte back takes the system a tenth of a second: a slab for each thread at a time.
template <class T>
RowTier<T>::~RowTier() {
  const Index n_slabs = static_cast<Index>(slabs_.size());
#pragma omp parallel for schedule(dynamic) num_threads(threads_) if (n_slabs > 1)
  for (Index s = 0; s < n_slabs; ++s) slabs_[s] = Buffer<T>();
}

template <class T>
T* RowTier<T>::new_row() {
  const Index row = count();
  const Index in_slab = row % rows_per_slab_;
  if (in_slab == 0) {
    const Index rows = std::min(rows_per_slab_, capacity_ - row);
    slabs_.emplace_back(rows * length_);
    resident_ = 0;
  }
  Buffer<T>& slab = slabs_.back();
  if ((in_slab + 1) * length_ > resident_) {
    const Index more = std::max(length_, kPrefaultBytes / static_cast<Index>(sizeof(T)));
    const Index end = std::min(slab.size(), resident_ + more);
    prefault(slab.data() + resident_, (end - resident_) * static_cast<Index>(sizeof(T)), threads_);
    resident_ = end;
  }
  return slab.data() + in_slab * length_;
}

template <class T>
T* RowTier<T>::find(Index variable) {
  const Index slot = slot_of_[variable];
  if (slot < 0) return nullptr;
  entries_[slot].stamp = ++clock_;
  return entries_[slot].values;
}

template <class T>
void RowTier<T>::offer_settled(const std::vector<char>& is_free) {
  offered_.clear();
  for (Index s = 0; s < count(); ++s)
    if (!is_free[entries_[s].variable]) offered_.push_back(s);
  std::sort(offered_.begin(), offered_.end(),
            [&](Index a, Index b) { return entries_[a].stamp > entries_[b].stamp; });
}

template <class T>
T* RowTier<T>::replace(Index slot, Index variable, Index valid) {
  Entry& entry = entries_[slot];
  slot_of_[entry.variable] = -1;
  slot_of_[variable] = slot;
  entry.variable = variable;
  entry.valid = valid;
  entry.stamp = ++clock_;
  return entry.values;
}

template <class T>
T* RowTier<T>::insert(Index variable, Index valid, const std::vector<char>& is_free,
                      Displace policy) {
  if (capacity_ == 0) return nullptr;
  while (!offered_.empty()) {
    const Index slot = offered_.back();
    offered_.pop_back();
    if (!is_free[entries_[slot].variable]) return replace(slot, variable, valid);
  }
  if (count() < capacity_) {
    T* values = new_row();
    slot_of_[variable] = count();
    entries_.push_back({variable, valid, ++clock_, values});
    return values;
  }
  Index victim = -1;
  bool victim_settled = false;
  for (Index s = 0; s < count(); ++s) {
    const bool settled = !is_free[entries_[s].variable];
    if (!settled && policy == Displace::settled_only) continue;
    const bool better = victim < 0 || (settled && !victim_settled) ||
                        (settled == victim_settled && entries_[s].stamp < entries_[victim].stamp);
    if (better) victim = s, victim_settled = settled;
  }
  return victim < 0 ? nullptr : replace(victim, variable, valid);
}

template <class T>
void RowTier<T>::reorder_columns(const std::vector<Index>& order, Index n_staying,
                                 const std::vector<char>& is_free, int threads) {
  const Index n_columns = static_cast<Index>(order.size()), n_leaving = n_columns - n_staying;
  const std::vector<std::int32_t> from(order.begin(), order.end());  // half the memory to read
#pragma omp parallel num_threads(threads) if (count() * n_columns > 200000)
  {
    std::vector<T> leaving(static_cast<std::size_t>(n_leaving));
#pragma omp for schedule(dynamic, 16)
    for (Index s = 0; s < count(); ++s) {
      Entry& entry = entries_[s];
      if (!is_free[entry.variable]) entry.valid = 0;
      T* values = entry.values;
      const bool is_whole = entry.valid >= n_columns;
      if (is_whole)
        for (Index k = 0; k < n_leaving; ++k) leaving[k] = values[from[n_staying + k]];
      const auto beyond =
          std::lower_bound(order.begin(), order.begin() + n_staying, entry.valid) - order.begin();
      for (Index k = 0; k < beyond; ++k) values[k] = values[from[k]];
      if (is_whole)
        std::copy(leaving.begin(), leaving.end(), values + n_staying);
      else
        entry.valid = static_cast<Index>(beyond);
    }
  }
}

template class RowTier<float>;
template class RowTier<double>;

}  // namespace kfu

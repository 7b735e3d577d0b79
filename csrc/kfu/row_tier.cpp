#include "kfu/row_tier.h"

#include <algorithm>

namespace kfu {

template <class T>
RowTier<T>::RowTier(Index n_variables, Index length, double bytes)
    : length_(length), slot_of_(static_cast<std::size_t>(n_variables), -1) {
  const double row_bytes = static_cast<double>(std::max<Index>(length, 1)) * sizeof(T);
  capacity_ = static_cast<Index>(
      std::min(static_cast<double>(n_variables), std::max(bytes, 0.0) / row_bytes));
}

template <class T>
T* RowTier<T>::find(Index variable) {
  const Index slot = slot_of_[variable];
  if (slot < 0) return nullptr;
  entries_[slot].stamp = ++clock_;
  return entries_[slot].values.get();
}

template <class T>
T* RowTier<T>::insert(Index variable, Index valid, const std::vector<char>& is_free,
                      Displace policy) {
  if (capacity_ == 0) return nullptr;
  if (count() < capacity_) {
    slot_of_[variable] = count();
    entries_.push_back({variable, valid, ++clock_, std::unique_ptr<T[]>(new T[length_])});
    return entries_.back().values.get();
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
  if (victim < 0) return nullptr;
  Entry& entry = entries_[victim];
  slot_of_[entry.variable] = -1;
  slot_of_[variable] = victim;
  entry.variable = variable;
  entry.valid = valid;
  entry.stamp = ++clock_;
  return entry.values.get();
}

template <class T>
void RowTier<T>::permute(const std::vector<Index>& order, int threads) {
  const Index reordered = static_cast<Index>(order.size());
#pragma omp parallel num_threads(threads) if (count() * reordered > 200000)
  {
    std::vector<T> old(order.size());
#pragma omp for schedule(static)
    for (Index s = 0; s < count(); ++s) {
      Entry& entry = entries_[s];
      if (entry.valid < reordered) {  // computed for fewer columns than move: not worth keeping
        entry.valid = 0;
        continue;
      }
      std::copy_n(entry.values.get(), reordered, old.begin());
      for (Index k = 0; k < reordered; ++k) entry.values[k] = old[order[k]];
    }
  }
}

template <class T>
void RowTier<T>::clear() {
  entries_.clear();
  std::fill(slot_of_.begin(), slot_of_.end(), -1);
}

template class RowTier<float>;
template class RowTier<double>;

}  // namespace kfu

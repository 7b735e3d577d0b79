#include "kfu/row_tier.h"

#include <omp.h>

#include <algorithm>
#include <stdexcept>

namespace kfu {

namespace {

constexpr Index kSlabBytes = Index{16} << 20;
constexpr Index kLineBytes = 64;

}  // namespace

template <class T>
RowTier<T>::RowTier(Index n_variables, double bytes, int threads, RowForm form)
    : form_(form),
      budget_(static_cast<Index>(std::min(std::max(bytes, 0.0), 0x1p62))),
      slot_of_(static_cast<std::size_t>(n_variables), -1),
      threads_(threads) {
  if (form != RowForm::floating && sizeof(T) != sizeof(float))
    throw std::invalid_argument("rows of fewer bytes a value are rows of float");
}

// The pages first, by all threads: freeing a gigabyte is otherwise a tenth of a second for one.
template <class T>
RowTier<T>::~RowTier() {
  std::vector<MemoryRange> ranges;
  for (Slab& slab : slabs_) ranges.push_back({slab.memory.data(), slab.memory.size()});
  give_back(ranges, threads_);
}

// Whole cache lines.
template <class T>
Index RowTier<T>::bytes_of(Index columns) const {
  if (form_ == RowForm::fixed)
    return fixed_blocks(columns) * static_cast<Index>(sizeof(FixedBlock));
  const std::size_t of_value = form_ == RowForm::coarse ? sizeof(std::uint16_t) : sizeof(T);
  const Index bytes = columns * static_cast<Index>(of_value);
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

template <class T>
Index RowTier<T>::row_bytes_of(Index columns) const {
  return std::max(bytes_of(columns), kLineBytes);
}

template <class T>
KeptRow<T> RowTier<T>::row_in(char* memory) const {
  KeptRow<T> row;
  switch (form_) {
    case RowForm::floating:
      row.floating = reinterpret_cast<T*>(memory);
      break;
    case RowForm::fixed:
      row.fixed = reinterpret_cast<FixedBlock*>(memory);
      break;
    case RowForm::coarse:
      row.coarse = reinterpret_cast<std::uint16_t*>(memory);
      break;
  }
  return row;
}

template <class T>
bool RowTier<T>::has_room(Index n_rows, Index columns) const {
  for (std::size_t s = open_; s < slabs_.size(); ++s)
    if (slabs_[s].room >= columns) n_rows -= slabs_[s].n_rows - slabs_[s].in_use;
  return n_rows <= 0 || n_rows * row_bytes_of(columns) <= budget_ - used_;
}

template <class T>
bool RowTier<T>::give_up(Index bytes) {
  if (bytes > budget_ - used_) return false;
  budget_ -= bytes;
  return true;
}

template <class T>
void RowTier<T>::recut(Index columns, RowForm form) {
  form_ = form;
  recut(columns);
}

template <class T>
void RowTier<T>::recut(Index columns) {
  for (const Entry& entry : entries_) slot_of_[entry.variable] = -1;
  entries_.clear();
  offered_.clear();
  open_ = 0;
  in_rows_ = 0;
  for (Slab& slab : slabs_) {
    slab.room = columns;
    slab.n_rows = slab.memory.size() / row_bytes_of(columns);
    slab.in_use = 0;
  }
}

// False if the budget has no room for a row.
template <class T>
bool RowTier<T>::add_slab(Index columns) {
  const Index row_bytes = row_bytes_of(columns);
  const Index affordable = (budget_ - used_) / row_bytes;
  const Index missing = static_cast<Index>(slot_of_.size()) - count();  // no variable has two rows
  const Index n_rows = std::min({affordable, missing, std::max<Index>(kSlabBytes / row_bytes, 1)});
  if (n_rows <= 0) return false;
  slabs_.push_back({Buffer<char>(n_rows * row_bytes), columns, n_rows});
  used_ += n_rows * row_bytes;
  return true;
}

// Memory for a row, or none.
template <class T>
char* RowTier<T>::new_row(Index valid, Index room) {
  const auto has_none = [&](const Slab& slab) {
    return slab.in_use == slab.n_rows || slab.room < valid;
  };
  std::size_t found = open_;
  while (found < slabs_.size() && has_none(slabs_[found])) ++found;
  if (found == slabs_.size() && !add_slab(std::max(room, valid)) && !add_slab(valid))
    return nullptr;
  open_ = found;
  Slab& slab = slabs_[open_];
  const Index row_bytes = row_bytes_of(slab.room);
  char* memory = slab.memory.data() + slab.in_use * row_bytes;
  const Index bytes = bytes_of(valid);
  const bool goes_on =  // the row before was as fresh, and as long as rows can be
      !fresh_.empty() && slab.in_use > 0 &&
      memory - static_cast<char*>(fresh_.back().begin) == fresh_.back().bytes;
  ++slab.in_use;
  in_rows_ += row_bytes;
  if (goes_on)
    fresh_.back().bytes += bytes;
  else
    fresh_.push_back({memory, bytes});
  return memory;
}

template <class T>
void RowTier<T>::populate() {
  prefault(fresh_, threads_);
  fresh_.clear();
}

template <class T>
KeptRow<T> RowTier<T>::find(Index variable) {
  const Index slot = slot_of_[variable];
  if (slot < 0) return {};
  entries_[slot].stamp = ++clock_;
  return row_in(entries_[slot].memory);
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
KeptRow<T> RowTier<T>::replace(Index slot, Index variable, Index valid) {
  Entry& entry = entries_[slot];
  slot_of_[entry.variable] = -1;
  slot_of_[variable] = slot;
  entry.variable = variable;
  entry.valid = valid;
  entry.stamp = ++clock_;
  return row_in(entry.memory);
}

template <class T>
KeptRow<T> RowTier<T>::insert(Index variable, Index valid, const std::vector<char>& is_free,
                              Displace policy, bool may_grow, Index room) {
  while (!offered_.empty()) {
    const Index slot = offered_.back();
    offered_.pop_back();
    if (!is_free[entries_[slot].variable] && entries_[slot].room >= valid)
      return replace(slot, variable, valid);
  }
  if (char* memory = may_grow ? new_row(valid, room) : nullptr) {
    slot_of_[variable] = count();
    entries_.push_back({variable, valid, slabs_[open_].room, ++clock_, memory});
    return row_in(memory);
  }
  if (policy == Displace::settled_only) return {};
  Index victim = -1;
  bool victim_settled = false;
  for (Index s = 0; s < count(); ++s) {
    if (entries_[s].room < valid) continue;
    const bool settled = !is_free[entries_[s].variable];
    const bool better = victim < 0 || (settled && !victim_settled) ||
                        (settled == victim_settled && entries_[s].stamp < entries_[victim].stamp);
    if (better) victim = s, victim_settled = settled;
  }
  return victim < 0 ? KeptRow<T>() : replace(victim, variable, valid);
}

template <class T>
void RowTier<T>::part_columns(const std::vector<std::uint16_t>& stays, Index n_columns,
                              const std::vector<char>& is_free, Simd simd) {
  const OuterLoops<T>& loops = outer_loops<T>(simd);
  const FixedLoops& fixed = fixed_loops(simd);
  const CoarseLoops& coarse = coarse_loops(simd);
  // Before the region: running out of memory in it would end the process.
  const bool is_large = count() * n_columns > 200000;
  const int threads = is_large ? threads_ : 1;
  const auto n_if = [&](bool is_wanted) {
    return static_cast<std::size_t>(is_wanted ? threads : 0);
  };
  std::vector<Buffer<T>> leaving(n_if(form_ == RowForm::floating));
  std::vector<FixedScratch> scratch(n_if(form_ == RowForm::fixed));
  std::vector<Buffer<std::uint16_t>> leaving_units(n_if(form_ == RowForm::coarse));
  for (Buffer<T>& each : leaving) each.resize(n_columns + 16);
  for (Buffer<std::uint16_t>& each : leaving_units) each.resize(n_columns + 32);
  for (FixedScratch& each : scratch) each.resize(n_columns);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads)
  for (Index s = 0; s < count(); ++s) {
    Entry& entry = entries_[s];
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    const KeptRow<T> row = row_in(entry.memory);
    const Index valid = is_free[entry.variable] ? std::min(entry.valid, n_columns) : 0;
    const bool keeps_all = valid == n_columns;
    Index n_staying;
    if (form_ == RowForm::fixed) {
      n_staying = fixed.part(row.fixed, stays.data(), valid, keeps_all, scratch[thread].parts());
    } else if (form_ == RowForm::coarse) {
      const std::uint16_t* others = leaving_units[thread].data();
      n_staying = coarse.part(row.coarse, stays.data(), valid, leaving_units[thread].data());
      if (keeps_all) std::copy(others, others + (valid - n_staying), row.coarse + n_staying);
    } else {
      const T* others = leaving[thread].data();
      n_staying = loops.part(row.floating, stays.data(), valid, leaving[thread].data());
      if (keeps_all) std::copy(others, others + (valid - n_staying), row.floating + n_staying);
    }
    if (!keeps_all) entry.valid = n_staying;
  }
}

template class RowTier<float>;
template class RowTier<double>;

}  // namespace kfu

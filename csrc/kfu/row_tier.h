// The rectangular tier of the kernel cache: full rows K(variable, all active variables).
//
// A byte budget, rows of T or of fewer bytes a value (kept_row.h) in slabs that are allocated as
// they are needed, least recently used first out. A row that belongs to an unbounded variable is
// worth more than any other (its variable will move again), so bounded ones go first; whether an
// unbounded one may be displaced at all is the caller's policy.
//
// The rows of a slab have room for the columns that were wanted when it was allocated: where memory
// is short and most variables have been dropped, the rest of it holds several times as many rows.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kfu/buffer.h"
#include "kfu/gram.h"
#include "kfu/kept_row.h"
#include "kfu/outer_loops.h"
#include "kfu/pages.h"
#include "kfu/types.h"

namespace kfu {

/// What may be displaced when the budget is used up.
enum class Displace {
  settled_only,  ///< rows of variables that are at a bound, as offer_settled() told
  any,           ///< the least recently used row of all
};

/// Getting fresh memory and giving it back costs a good part of a nanosecond a value: rows of
/// values of fewer multiply-adds than this are first computed again rather than kept. (With rows of
/// two bytes: 32 features take 6 to 23 % less time when they are kept, 24 as much, 20 half as much
/// again.)
constexpr double kCheapValue = 30.0;
/// Of these, so much is kept at once where rows are asked for one by one, by rules for the working
/// set that move few variables at a time: it mostly stays in the third-level cache.
constexpr double kCheapRowsBytes = 16e6;

/// Sums of coarse rows have to be mended now and then, from values computed again: rows of values
/// of more multiply-adds than this are kept in fixed point.
constexpr double kDearToRefresh = 130.0;

/// Fewer bytes a value for float32 values in [0, 1], unless these are so cheap that it takes longer
/// to round them than it saves.
template <class T>
RowForm form_of_rows(const Gram<T>& gram, double value_cost) {
  const bool is_float = sizeof(T) == sizeof(float);
  if (!is_float || !gram.is_within_unit() || value_cost < kCheapValue) return RowForm::floating;
  return value_cost <= kDearToRefresh ? RowForm::coarse : RowForm::fixed;
}

template <class T>
class RowTier {
 public:
  /// As many rows are kept as `bytes` hold. `threads` share the work of getting fresh memory. Forms
  /// other than floating are for T = float.
  RowTier(Index n_variables, double bytes, int threads, RowForm form = RowForm::floating);
  RowTier(const RowTier&) = delete;
  RowTier& operator=(const RowTier&) = delete;
  ~RowTier();

  Index count() const { return static_cast<Index>(entries_.size()); }
  Index bytes() const { return in_rows_; }  ///< of rows, as long as they may become
  /// Whether so many more rows of so many columns find room without displacing any.
  bool has_room(Index n_rows, Index columns) const;
  /// Lessens the budget; false, and nothing done, if so much of it is in use.
  bool give_up(Index bytes);
  /// Forgets all rows, and uses their memory for as many of so many columns as it holds.
  void recut(Index columns);
  /// The same, for rows of another form.
  void recut(Index columns, RowForm form);
  RowForm form() const { return form_; }

  bool has(Index variable) const { return slot_of_[variable] >= 0; }
  /// The row of `variable`, or none. Valid for columns [0, valid(variable)). Marks it as used.
  KeptRow<T> find(Index variable);
  /// Both require has(variable).
  Index valid(Index variable) const { return entries_[slot_of_[variable]].valid; }
  void set_valid(Index variable, Index columns) { entries_[slot_of_[variable]].valid = columns; }
  /// How many columns the row of `variable` has room for. Requires has(variable).
  Index room(Index variable) const { return entries_[slot_of_[variable]].room; }
  /// Tells the rows that may give way from here on: those of bounded variables, the least recently
  /// used first. insert() takes their memory before it asks for more, which costs as much to touch
  /// as it does to compute cheap values.
  void offer_settled(const std::vector<char>& is_free);
  /// Room for the row of `variable`, displacing another if need be, or none; with settled_only,
  /// those that offer_settled() has told. is_free[v] tells which variables are unbounded. Rows may
  /// be in fresh memory, if `may_grow`: populate() before they are written spares the traps of its
  /// pages. Memory that is got has room for `room` columns where the budget has, at least for
  /// `valid`.
  KeptRow<T> insert(Index variable, Index valid, const std::vector<char>& is_free, Displace policy,
                    bool may_grow = true, Index room = 0);
  /// Makes the valid columns of the rows inserted since the last call resident.
  void populate();
  /// The first n_columns: those that stay move to the front, in their order, and the others behind
  /// them, in theirs (`stays` as for OuterLoops::part). Rows that have them all keep them, shorter
  /// ones lose what leaves. Rows of variables that are not free lose all their values: they are not
  /// worth the copying.
  void part_columns(const std::vector<std::uint16_t>& stays, Index n_columns,
                    const std::vector<char>& is_free, Simd simd);

 private:
  struct Entry {
    Index variable;
    Index valid;
    Index room;
    Index stamp;
    char* memory;
  };
  struct Slab {
    Buffer<char> memory;
    Index room;    // columns of a row
    Index n_rows;  // that it has memory for
    Index in_use = 0;
  };

  Index bytes_of(Index columns) const;
  Index row_bytes_of(Index columns) const;  // that a slab has for a row
  KeptRow<T> row_in(char* memory) const;
  bool add_slab(Index columns);
  char* new_row(Index valid, Index room);
  KeptRow<T> replace(Index slot, Index variable, Index valid);

  RowForm form_;
  Index budget_, used_ = 0, in_rows_ = 0;  // bytes; of slabs, and of rows in them
  Index clock_ = 0;
  std::vector<Slab> slabs_;
  std::size_t open_ = 0;  // the slab that rows were last taken from; those behind it are whole
  std::vector<Entry> entries_;
  std::vector<Index> offered_;  // entries, the first to go last
  std::vector<Index> slot_of_;  // by variable; −1: not kept
  int threads_;
  std::vector<MemoryRange> fresh_;  // not yet populated
};

/// Rows that several solvers use one after the other, and the columns they are over.
template <class T>
struct SharedRows {
  std::shared_ptr<RowTier<T>> tier;
  std::shared_ptr<ColumnSet> columns;
};

extern template class RowTier<float>;
extern template class RowTier<double>;

}  // namespace kfu

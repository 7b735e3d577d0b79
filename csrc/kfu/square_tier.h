// The square tier of the kernel cache: K between the variables of the current chunk.
//
// Slots are stable: a variable that stays in the chunk keeps its slot, and what is known of its row
// stays. Rows are filled when the subproblem solver first asks for them, or beforehand and by all
// threads where they are sure to be asked for (prepare). A row that lacks the columns of the last
// edit alone gets them from the rows of that edit, if these are complete (mirror). Otherwise an
// entry comes, in this order of preference, from the rectangular tier (a gather; only where that
// costs less than a value), from the transposed entry of a row that is already there, or from the
// kernel. The unit of the last two is a panel of columns (Gram::panel_width): a panel is evaluated
// if any of its entries is missing, because the panel kernels compute it whole at the price of one
// entry.
//
// Staleness: born_[s] is the edit that put the current variable into slot s, filled_[s] the edit
// after which row s was last complete. Entry (s, c) is known iff born_[c] ≤ filled_[s]; row s is
// complete iff filled_[s] equals the current edit.
#pragma once

#include <memory>
#include <vector>

#include "kfu/buffer.h"
#include "kfu/gram.h"
#include "kfu/outer_loops.h"
#include "kfu/row_tier.h"
#include "kfu/smo.h"

namespace kfu {

template <class T>
class SquareTier final : public BlockRows<T> {
 public:
  /// `gathers` tells whether a value is dearer to compute than to fetch from the rectangular tier.
  /// `memory`, of any size, is used if it suffices: what it has of pages need not be got again.
  SquareTier(const Gram<T>& gram, Index capacity, RowTier<T>& row_tier, bool gathers, int threads,
             Buffer<T> memory = Buffer<T>());

  /// What the block of so many slots takes, in values.
  static Index size_of_block(Index capacity);
  bool has_memory_for(Index capacity) const { return block_.size() >= size_of_block(capacity); }
  /// Gives up the memory of the block; nothing else may be asked of the tier then.
  Buffer<T> take_memory() { return std::move(block_); }

  Index capacity() const { return capacity_; }
  Index evaluations() const { return evaluations_; }

  /// Puts variables (with their data points and K_kk + ridge_k) into slots; slots beyond size()
  /// come last and in increasing order. Invalidates every pointer from get().
  void assign(const std::vector<Index>& slots, const std::vector<Index>& variables,
              const std::vector<Index>& points, const std::vector<double>& diagonal);
  /// Number of slots in use: slots [0, size) hold variables.
  Index size() const { return size_; }
  /// Tells where the rectangular tier keeps the column of each slot (after a shrink or an edit).
  void set_places(const std::vector<Index>& places);

  /// Makes the rows of `slots` complete, with threads: for rows that are sure to be asked for.
  void prepare(const std::vector<Index>& slots, int threads);

  bool has(Index k) const override { return filled_[k] == edit_; }
  const T* get(Index k) const override { return block_.data() + k * ld_; }
  void fill(const Index* ks, Index count) override;
  Index batch() const override { return batch_; }

 private:
  KeptRow<T> kept_row(Index slot);
  void gather(Index slot, const KeptRow<T>& full);
  void gather_columns(const KeptRow<T>& full, const Index* columns, Index count, T* row) const;
  void copy_transposed(Index slot, Index first, Index last);
  bool lacks_last_edit_only(Index slot) const;
  void copy_last_edit(Index slot);
  void copy_last_edit(const std::vector<Index>& slots, int threads);
  bool all_complete(Index first, Index last) const;
  void evaluate(const std::vector<Index>& slots, Index first, Index last);

  const Gram<T>& gram_;
  RowTier<T>& row_tier_;
  Index capacity_, ld_, panel_, batch_;
  Index size_ = 0;
  Index edit_ = 1;
  Index evaluations_ = 0;
  Index last_place_ = -1;  // the largest of places_
  bool gathers_;
  const OuterLoops<T>& loops_;
  bool edit_is_complete_ = false;  // the rows of the last edit are
  Buffer<T> block_;
  std::unique_ptr<ColumnSet> columns_;
  std::vector<Index> variables_, points_, places_, born_, filled_;
  std::vector<Index> edited_;  // slots of the last edit
  std::vector<double> diagonal_;
};

extern template class SquareTier<float>;
extern template class SquareTier<double>;

}  // namespace kfu

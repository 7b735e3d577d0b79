// Column sets of the panel code.
#pragma once

#include <memory>
#include <vector>

#include "kfu/buffer.h"
#include "kfu/gram.h"
#include "kfu/points.h"

namespace kfu {

/// A ColumnSet as the panel code reads it.
template <class T>
class PanelColumns : public ColumnSet {
 public:
  /// `points` outlives the set, unless it is handed over in `owned`.
  PanelColumns(const Program<T>& program, const Points<T>& points, std::unique_ptr<Points<T>> owned,
               int threads)
      : program_(program), points_(points), owned_(std::move(owned)), threads_(threads) {}

  Index size() const override { return size_; }
  void assign(Index first, const Index* points, Index count) override;
  void assign_slots(const Index* slots, const Index* points, Index count) override;
  void truncate(Index size) override;

  /// Per channel; valid until the set is next changed.
  virtual std::vector<ColumnSide<T>> sides() const = 0;
  /// CSR: entries of the longest point the set can hold.
  Index max_count() const { return points_.max_count(); }
  /// The points that slots are filled from.
  const Points<T>& points() const { return points_; }
  /// Whether the slots are all points of a data set of their own, in order.
  bool holds_all() const { return owned_ != nullptr && size_ == owned_->size(); }

 protected:
  virtual void grow(Index size) = 0;
  virtual void put(Index slot, Index point) = 0;
  /// Values that are moved when `count` points are put.
  Index cost_of(Index count) const;

  const Program<T>& program_;
  const Points<T>& points_;
  std::unique_ptr<Points<T>> owned_;
  int threads_;
  Index size_ = 0;
};

template <class T>
std::unique_ptr<PanelColumns<T>> make_panel_columns(const Program<T>& program,
                                                    const Points<T>& points,
                                                    std::unique_ptr<Points<T>> owned, int threads,
                                                    Index capacity);

/// CSR columns are kept expanded as [feature][width] panels while they have at most
/// max_expanded_features and take at most this much memory: then a call need not expand them again.
inline constexpr Index max_expanded_bytes = Index{64} << 20;

}  // namespace kfu

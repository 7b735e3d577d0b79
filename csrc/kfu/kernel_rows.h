// Rows of K in float64, computed when first asked for and kept within a budget: what a path and the
// leave-one-out runs read again and again.
//
// A row holds K(point of variable i, points of all variables), followed by K(·, watched points),
// which are rows of another data set whose outputs are wanted along the way. Several threads may
// ask at the same time. A row stays valid between take() and give_back().
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kfu/buffer.h"
#include "kfu/kernel_store.h"

namespace kfu {

class KernelRows {
 public:
  /// `points` are the variables' rows of the data. `watched` may be null.
  KernelRows(std::shared_ptr<KernelStore> store, std::vector<Index> points, const DataView* watched,
             double bytes);

  Index n_variables() const { return static_cast<Index>(points_.size()); }
  Index n_watched() const { return n_watched_; }
  Index length() const { return n_variables() + n_watched_; }
  const std::vector<double>& diagonal() const { return diagonal_; }
  Simd simd() const { return gram_.simd(); }
  Index evaluations() const { return evaluations_; }

  const double* take(Index variable);
  void give_back(Index variable);

  /// Computes all rows at once, in panels, if they fit; what follows then only reads.
  void fill();
  bool is_full() const { return is_full_; }

  /// out[c] += Σ_k coef[k]·K(variables[k], c) over all length() columns, without keeping rows.
  void accumulate(const Index* variables, const double* coef, Index count, double* out) const;

 private:
  struct Row {
    Buffer<double> values;
    Index pins = 0;
    Index last_use = 0;
    bool is_there = false;
  };

  void compute(const std::vector<Index>& variables);
  void make_room();

  std::shared_ptr<KernelStore> store_;
  std::vector<Index> points_;
  const Gram<double>& gram_;
  std::unique_ptr<ColumnSet> columns_;
  std::unique_ptr<ColumnSet> watched_columns_;
  Index n_watched_ = 0;
  Index most_rows_;
  Index n_rows_ = 0;
  Index clock_ = 0;
  std::atomic<Index> evaluations_{0};
  std::vector<double> diagonal_;
  std::vector<Row> rows_;
  std::atomic<bool> is_full_{false};  // nothing is computed or dropped any more
  std::mutex lock_;
};

/// A row held for as long as this exists.
class HeldRow {
 public:
  HeldRow(KernelRows& rows, Index variable)
      : rows_(&rows), variable_(variable), values_(rows.take(variable)) {}
  HeldRow(const HeldRow& other) : HeldRow(*other.rows_, other.variable_) {}
  HeldRow(HeldRow&& other) noexcept
      : rows_(other.rows_), variable_(other.variable_), values_(other.values_) {
    other.values_ = nullptr;
  }
  HeldRow& operator=(HeldRow&& other) noexcept {
    std::swap(rows_, other.rows_);
    std::swap(variable_, other.variable_);
    std::swap(values_, other.values_);
    return *this;
  }
  ~HeldRow() {
    if (values_ != nullptr) rows_->give_back(variable_);
  }
  const double* values() const { return values_; }

 private:
  KernelRows* rows_;
  Index variable_;
  const double* values_;
};

}  // namespace kfu

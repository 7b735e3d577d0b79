// Sums of kept rows, shared out among threads.
#pragma once

#include <algorithm>
#include <vector>

#include "kfu/column_work.h"
#include "kfu/kept_row.h"
#include "kfu/smo_loops.h"

namespace kfu {

/// F[k] += Σ_r delta[r]·rows[r][k], in the order of r. Rows are all of one form.
/// Each thread works on equal pieces of the columns, as long as the second-level cache has room for
/// their F: a row is then read in few long streams, and none waits for another's last piece.
template <class T>
class RowSums final : public ColumnWork {
 public:
  RowSums(Simd simd, double* F, const std::vector<KeptRow<T>>& rows,
          const std::vector<double>& delta, int threads, Index most_columns = 16384)
      : loops_(smo_loops<T, double>(simd)),
        fixed_loops_(fixed_loops(simd)),
        coarse_loops_(coarse_loops(simd)),
        F_(F),
        delta_(delta),
        threads_(threads),
        most_columns_(most_columns),
        in_blocks_(!rows.empty() && rows[0].floating == nullptr) {
    for (const KeptRow<T>& row : rows) {
      if (row.fixed != nullptr)
        fixed_.push_back(row.fixed);
      else if (row.coarse != nullptr)
        coarse_.push_back(row.coarse);
      else
        floating_.push_back(row.floating);
    }
    shifted_.resize(static_cast<std::size_t>(threads), floating_);
  }

  Index width(Index n_columns) const override {
    const Index n_wanted = threads_ * (n_columns / (threads_ * most_columns_) + 1);
    const Index unit = in_blocks_ ? kFixedColumns : kLoopPad;  // pieces are of whole blocks
    return (n_columns / n_wanted + unit) / unit * unit;
  }

  void run(Index first, Index last, int thread) override {
    const Index n_rows = static_cast<Index>(delta_.size());
    if (!fixed_.empty()) {
      fixed_loops_.add_rows(F_, fixed_.data(), delta_.data(), n_rows, first, last);
      return;
    }
    if (!coarse_.empty()) {
      coarse_loops_.add_rows(F_, coarse_.data(), delta_.data(), n_rows, first, last);
      return;
    }
    std::vector<const T*>& rows = shifted_[static_cast<std::size_t>(thread)];
    for (Index r = 0; r < n_rows; ++r) rows[r] = floating_[r] + first;
    loops_.add_rows(F_ + first, rows.data(), delta_.data(), n_rows, last - first);
  }

 private:
  const SmoLoops<T, double>& loops_;
  const FixedLoops& fixed_loops_;
  const CoarseLoops& coarse_loops_;
  double* F_;
  std::vector<double> delta_;
  int threads_;
  Index most_columns_;
  bool in_blocks_;
  std::vector<const FixedBlock*> fixed_;
  std::vector<const std::uint16_t*> coarse_;
  std::vector<const T*> floating_;
  std::vector<std::vector<const T*>> shifted_;  // by thread
};

/// The same for k in [first, last), at once: threads do not change a bit.
template <class T>
void add_rows_in_shares(Simd simd, double* F, const std::vector<KeptRow<T>>& rows,
                        const std::vector<double>& delta, Index first, Index last, int threads) {
  constexpr Index kParallelValues = 200000;
  const Index n_rows = static_cast<Index>(rows.size()), n_columns = last - first;
  if (n_rows == 0 || n_columns <= 0) return;
  StagedColumns columns(first, last);
  columns.add(std::make_shared<RowSums<T>>(simd, F, rows, delta, threads), first, last);
  run_by_all(columns, n_rows * n_columns > kParallelValues ? threads : 1);
}

}  // namespace kfu

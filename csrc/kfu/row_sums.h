// Sums of kept rows, shared out among threads.
#pragma once

#include <algorithm>
#include <vector>

#include "kfu/fixed_rows.h"
#include "kfu/smo_loops.h"

namespace kfu {

/// F[k] += Σ_r delta[r]·rows[r][k] for k in [first, last), in the order of r: threads do not change
/// a bit. Rows are all of T or all in fixed point. Each thread works on equal pieces of the
/// columns, as long as the second-level cache has room for their F: a row is then read in few long
/// streams, and none waits for another's last piece.
template <class T>
void add_rows_in_shares(Simd simd, double* F, const std::vector<KeptRow<T>>& rows,
                        const std::vector<double>& delta, Index first, Index last, int threads) {
  constexpr Index kMostColumns = 16384;
  constexpr Index kParallelValues = 200000;
  const Index n_rows = static_cast<Index>(rows.size()), n_columns = last - first;
  if (n_rows == 0 || n_columns <= 0) return;
  const SmoLoops<T, double>& loops = smo_loops<T, double>(simd);
  const FixedLoops& fixed = fixed_loops(simd);
  const bool is_fixed = rows[0].fixed != nullptr;
  const Index n_wanted = threads * (n_columns / (threads * kMostColumns) + 1);
  const Index unit = is_fixed ? kFixedColumns : kLoopPad;
  const Index start = is_fixed ? first / unit * unit : first;  // pieces are of whole blocks
  const Index width = ((last - start) / n_wanted + unit) / unit * unit;
  const Index n_pieces = (last - start + width - 1) / width;
  // Before the region: running out of memory would end the process.
  std::vector<const T*> shifted;
  std::vector<const FixedBlock*> blocks;
  for (const KeptRow<T>& row : rows)
    if (is_fixed) blocks.push_back(row.fixed);
  for (Index p = 0; p < n_pieces && !is_fixed; ++p)
    for (const KeptRow<T>& row : rows) shifted.push_back(row.floating + start + p * width);
#pragma omp parallel for schedule(dynamic) \
    num_threads(threads) if (n_rows * n_columns > kParallelValues)
  for (Index p = 0; p < n_pieces; ++p) {
    const Index begin = std::max(first, start + p * width);
    const Index end = std::min(last, start + (p + 1) * width);
    if (is_fixed)
      fixed.add_rows(F, blocks.data(), delta.data(), n_rows, begin, end);
    else
      loops.add_rows(F + begin, shifted.data() + p * n_rows, delta.data(), n_rows, end - begin);
  }
}

}  // namespace kfu

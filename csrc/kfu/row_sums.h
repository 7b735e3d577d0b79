// Sums of kept rows, shared out among threads.
#pragma once

#include <algorithm>
#include <vector>

#include "kfu/smo_loops.h"

namespace kfu {

/// F[k] += Σ_r delta[r]·rows[r][k] for k in [first, last), in the order of r: threads do not change
/// a bit. Each works on equal pieces of the columns, as long as the second-level cache has room for
/// their F: a row is then read in few long streams, and none waits for another's last piece.
template <class T>
void add_rows_in_shares(const SmoLoops<T, double>& loops, double* F,
                        const std::vector<const T*>& rows, const std::vector<double>& delta,
                        Index first, Index last, int threads) {
  constexpr Index kMostColumns = 16384;
  constexpr Index kParallelValues = 200000;
  const Index n_rows = static_cast<Index>(rows.size()), n_columns = last - first;
  if (n_rows == 0 || n_columns <= 0) return;
  const Index n_wanted = threads * (n_columns / (threads * kMostColumns) + 1);
  const Index width = padded(n_columns / n_wanted + 1);
  const Index n_pieces = (n_columns + width - 1) / width;
  std::vector<const T*> shifted;  // before the region: running out of memory would end the process
  for (Index p = 0; p < n_pieces; ++p)
    for (const T* row : rows) shifted.push_back(row + first + p * width);
#pragma omp parallel for schedule(dynamic) \
    num_threads(threads) if (n_rows * n_columns > kParallelValues)
  for (Index p = 0; p < n_pieces; ++p) {
    const Index begin = first + p * width, end = std::min(last, begin + width);
    loops.add_rows(F + begin, shifted.data() + p * n_rows, delta.data(), n_rows, end - begin);
  }
}

}  // namespace kfu

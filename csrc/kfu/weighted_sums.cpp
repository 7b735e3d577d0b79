#include "kfu/weighted_sums.h"

#include <algorithm>
#include <exception>
#include <memory>

namespace kfu {

namespace {

constexpr Index kColumnsAtOnce = 4096;  // bounds the packed copy of the points
constexpr Index kColumnBlock = 512;     // of the symmetric part: one phase of its sums
constexpr Index kRowBlock = 96;         // of the symmetric part: one task

}  // namespace

template <class T>
Index add_columns(const WeightedPoints& support, const Gram<T>& gram,
                  const std::vector<Index>& points, std::vector<double>& sums, Part part) {
  const Index n = static_cast<Index>(points.size());
  if (n == 0 || support.size() == 0) return 0;
  const std::unique_ptr<ColumnSet> columns = gram.make_columns(std::min(n, kColumnsAtOnce));
  for (Index first = 0; first < n; first += kColumnsAtOnce) {
    const Index count = std::min(kColumnsAtOnce, n - first);
    columns->truncate(0);
    columns->assign(0, points.data() + first, count);
    gram.accumulate(support.points.data(), support.coef.data(), support.size(), 1, *columns, 0,
                    count, sums.data() + first, count, {nullptr, RowForm::floating, part});
  }
  return support.size() * n;
}

// Columns come in blocks J, one after the other; the rows before the end of J in blocks I, shared
// out among the threads. A block with I before J gives Σ over its columns to the sums of I, which
// no other task of the phase touches, and Σ over its rows to a partial sum of J; the partial sums
// are added in the order of I.
template <class T>
Index symmetric_sums(const WeightedPoints& members, const Gram<T>& gram, int threads,
                     std::vector<double>& sums, Part part) {
  const Index n = members.size();
  const Index* points = members.points.data();
  const double* coef = members.coef.data();
  Index values = 0;
  std::vector<double> partial;
  const std::unique_ptr<ColumnSet> columns = gram.make_columns(std::min(n, kColumnBlock));
  for (Index begin = 0; begin < n; begin += kColumnBlock) {
    const Index end = std::min(n, begin + kColumnBlock), width = end - begin;
    columns->truncate(0);
    columns->assign(0, points + begin, width);
    const Index n_before = (begin + kRowBlock - 1) / kRowBlock;  // row blocks of [0, begin)
    const Index n_within = (width + kRowBlock - 1) / kRowBlock;  // row blocks of [begin, end)
    partial.assign(static_cast<std::size_t>((n_before + n_within) * width), 0.0);
    std::exception_ptr failure;  // running out of memory must not end the process
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (end * width > 20000)
    for (Index b = 0; b < n_before + n_within; ++b) try {
        double* to = partial.data() + b * width;
        const bool is_before = b < n_before;
        const Index row = is_before ? b * kRowBlock : begin + (b - n_before) * kRowBlock;
        const Index row_end = std::min(is_before ? begin : end, row + kRowBlock);
        const Index beyond = is_before ? 0 : row_end - begin;  // columns after the rows' own
        if (beyond > 0)                                        // the block on the diagonal, whole
          gram.accumulate(points + row, coef + row, row_end - row, 1, *columns, row - begin, beyond,
                          to, width, {nullptr, RowForm::floating, part});
        gram.accumulate_both(points + row, coef + row, row_end - row, *columns, beyond, width,
                             coef + begin, to, sums.data() + row, part);
      } catch (...) {
#pragma omp critical(symmetric_sums_failure)
        failure = std::current_exception();
      }
    if (failure) std::rethrow_exception(failure);
    for (Index b = 0; b < n_before + n_within; ++b)
      for (Index c = 0; c < width; ++c) sums[begin + c] += partial[b * width + c];
    values += begin * width + width * (width + kRowBlock) / 2;
  }
  return values;
}

template Index add_columns(const WeightedPoints&, const Gram<float>&, const std::vector<Index>&,
                           std::vector<double>&, Part);
template Index add_columns(const WeightedPoints&, const Gram<double>&, const std::vector<Index>&,
                           std::vector<double>&, Part);
template Index symmetric_sums(const WeightedPoints&, const Gram<float>&, int, std::vector<double>&,
                              Part);
template Index symmetric_sums(const WeightedPoints&, const Gram<double>&, int, std::vector<double>&,
                              Part);

}  // namespace kfu

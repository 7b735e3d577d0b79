// Passes over the rows of a data matrix with float64 vectors: what the linear solver is made of.
//
//   apply      out_k = x_k · w
//   add        w = Σ_k coef_k x_k
//   add_outer  H += Σ_k weight_k (x_k − m)(x_k − m)ᵀ
//
// k runs over variables; several may share a row. Values are float32 or float64, all sums float64.
// The order of summation depends on the data alone, so threads do not change a bit.
#pragma once

#include <vector>

#include "kfu/types.h"

namespace kfu {

/// One row at a time, for code templated on the layout.
template <class V, bool IsCsr>
class RowReader {
 public:
  static constexpr bool is_dense = !IsCsr;

  explicit RowReader(const DataView& data)
      : x_(data), values_(static_cast<const V*>(data.values)) {}

  double dot(Index i, const double* w) const {
    if constexpr (IsCsr) {
      // Two sums: the additions of one would wait for each other.
      const Index last = x_.indptr[i + 1];
      Index k = x_.indptr[i];
      double even = 0.0, odd = 0.0;
      for (; k + 1 < last; k += 2) {
        even += w[x_.indices[k]] * static_cast<double>(values_[k]);
        odd += w[x_.indices[k + 1]] * static_cast<double>(values_[k + 1]);
      }
      if (k < last) even += w[x_.indices[k]] * static_cast<double>(values_[k]);
      return even + odd;
    } else {
      const V* row = values_ + i * x_.ld;
      double sum = 0.0;
#pragma omp simd reduction(+ : sum)
      for (Index k = 0; k < x_.d; ++k) sum += w[k] * static_cast<double>(row[k]);
      return sum;
    }
  }

  void add(Index i, double c, double* w) const {
    if constexpr (IsCsr) {
      for (Index k = x_.indptr[i]; k < x_.indptr[i + 1]; ++k)
        w[x_.indices[k]] += c * static_cast<double>(values_[k]);
    } else {
      const V* row = values_ + i * x_.ld;
#pragma omp simd
      for (Index k = 0; k < x_.d; ++k) w[k] += c * static_cast<double>(row[k]);
    }
  }

  /// Dense only: (x − mean)·factor.
  void copy(Index i, const double* mean, double factor, double* to) const {
    const V* row = values_ + i * x_.ld;
    for (Index k = 0; k < x_.d; ++k) to[k] = (static_cast<double>(row[k]) - mean[k]) * factor;
  }

  double square(Index i) const {
    const Index first = IsCsr ? x_.indptr[i] : i * x_.ld;
    const Index last = IsCsr ? x_.indptr[i + 1] : first + x_.d;
    double sum = 0.0;
    for (Index k = first; k < last; ++k)
      sum += static_cast<double>(values_[k]) * static_cast<double>(values_[k]);
    return sum;
  }

  /// Asks for the row ahead of its use: rows come in random order.
  void prefetch(Index i) const {
    constexpr Index kLine = 64, kMost = 1024;  // bytes
    const Index first = IsCsr ? x_.indptr[i] : i * x_.ld;
    const Index count = IsCsr ? x_.indptr[i + 1] - first : x_.d;
    const char* from = reinterpret_cast<const char*>(values_ + first);
    const Index bytes = count * static_cast<Index>(sizeof(V));
    for (Index at = 0; at < bytes && at < kMost; at += kLine) __builtin_prefetch(from + at);
    if constexpr (IsCsr) {
      const char* index = reinterpret_cast<const char*>(x_.indices + first);
      for (Index at = 0; at < count * 4 && at < kMost; at += kLine) __builtin_prefetch(index + at);
    }
  }
  /// Asks for what prefetch() has to know.
  void prefetch_extent(Index i) const {
    if constexpr (IsCsr) __builtin_prefetch(x_.indptr + i);
  }

 private:
  DataView x_;
  const V* values_;
};

/// Calls `use` with the reader of the data's layout.
template <class Use>
auto with_reader(const DataView& data, Use&& use) {
  if (data.is_csr)
    return data.is_double ? use(RowReader<double, true>(data)) : use(RowReader<float, true>(data));
  return data.is_double ? use(RowReader<double, false>(data)) : use(RowReader<float, false>(data));
}

class LinearRows {
 public:
  /// `points` gives the row behind each variable.
  LinearRows(const DataView& data, std::vector<Index> points, int threads);

  Index size() const { return static_cast<Index>(points_.size()); }
  Index n_features() const { return data_.d; }
  const DataView& data() const { return data_; }
  const std::vector<Index>& points() const { return points_; }

  /// ‖x_k‖² of every variable.
  void squares(double* out) const;
  /// out[m] = x · w for the variables which[0..count); `which` null: all of them.
  void apply(const Index* which, Index count, const double* w, double* out) const;
  /// w = Σ_m coef[m] x(which[m]).
  void add(const Index* which, Index count, const double* coef, double* w) const;
  /// Lower triangle of H (d × d, row-major) += Σ_m weight[m] (x − mean)(x − mean)ᵀ, where `mean` is
  /// the weighted mean of those rows or zero.
  void add_outer(const Index* which, Index count, const double* weight, const double* mean,
                 double* H) const;

 private:
  void add_outer_dense(const Index* which, Index count, const double* weight, const double* mean,
                       double* H) const;
  void add_outer_csr(const Index* which, Index count, const double* weight, const double* mean,
                     double* H) const;
  Index variable(const Index* which, Index m) const { return points_[which ? which[m] : m]; }

  DataView data_;
  std::vector<Index> points_;
  int threads_;
};

}  // namespace kfu

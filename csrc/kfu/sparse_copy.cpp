#include "kfu/sparse_copy.h"

#include <algorithm>
#include <vector>

namespace kfu {

namespace {

constexpr Index kLeastFeatures = 32;  // below, a dense tile has no work to save
constexpr double kMostFilled = 0.4;   // part of non-zero entries up to which CSR is faster
constexpr Index kSampledRows = 512;
constexpr double kLargestOffset = 4.0;  // mean square of the features over their variance

template <class S>
Index count_row(const DataView& data, Index row) {
  const S* x = static_cast<const S*>(data.values) + row * data.ld;
  Index count = 0;
  for (Index k = 0; k < data.d; ++k) count += x[k] != S(0);
  return count;
}

Index count_entries(const DataView& data, Index row) {
  return data.is_double ? count_row<double>(data, row) : count_row<float>(data, row);
}

double value_at(const DataView& data, Index row, Index k) {
  const Index at = row * data.ld + k;
  return data.is_double ? static_cast<const double*>(data.values)[at]
                        : static_cast<double>(static_cast<const float*>(data.values)[at]);
}

bool is_near_origin(const DataView& data, Index sampled) {
  std::vector<double> sums(static_cast<std::size_t>(data.d), 0.0);
  double squares = 0.0, means = 0.0;
  for (Index s = 0; s < sampled; ++s) {
    for (Index k = 0; k < data.d; ++k) {
      const double x = value_at(data, s * data.n / sampled, k);
      sums[k] += x;
      squares += x * x;
    }
  }
  for (const double sum : sums) means += sum * sum / static_cast<double>(sampled);
  return squares <= kLargestOffset * (squares - means) || means == 0.0;
}

}  // namespace

bool is_mostly_zero(const DataView& data) {
  if (data.is_csr || data.n == 0 || data.d < kLeastFeatures) return false;
  const Index sampled = std::min(data.n, kSampledRows);
  Index filled = 0;
  for (Index s = 0; s < sampled; ++s) filled += count_entries(data, s * data.n / sampled);
  const auto size = static_cast<double>(sampled) * static_cast<double>(data.d);
  return static_cast<double>(filled) <= kMostFilled * size && is_near_origin(data, sampled);
}

SparseCopy::SparseCopy(const DataView& dense, int threads) : indptr_(dense.n + 1) {
  const bool is_large = dense.n * dense.d > 1000000;
  indptr_[0] = 0;
#pragma omp parallel for schedule(static) num_threads(threads) if (is_large)
  for (Index i = 0; i < dense.n; ++i) indptr_[i + 1] = count_entries(dense, i);
  for (Index i = 0; i < dense.n; ++i) indptr_[i + 1] += indptr_[i];
  indices_.resize(indptr_[dense.n]);
  if (dense.is_double)
    fill(dense, is_large ? threads : 1, doubles_);
  else
    fill(dense, is_large ? threads : 1, floats_);
}

template <class S>
void SparseCopy::fill(const DataView& dense, int threads, Buffer<S>& values) {
  values.resize(indptr_[dense.n]);
  // No branch, as which entries are zero cannot be foreseen: each is written, and stays if it is
  // not. The one that may lie behind a row's last must not be in the next row's place.
#pragma omp parallel num_threads(threads)
  {
    std::vector<std::int32_t> found(static_cast<std::size_t>(dense.d) + 1);
    std::vector<S> kept(static_cast<std::size_t>(dense.d) + 1);
#pragma omp for schedule(static)
    for (Index i = 0; i < dense.n; ++i) {
      const S* x = static_cast<const S*>(dense.values) + i * dense.ld;
      Index count = 0;
      for (Index k = 0; k < dense.d; ++k) {
        found[count] = static_cast<std::int32_t>(k);
        kept[count] = x[k];
        count += x[k] != S(0);
      }
      std::copy_n(found.data(), count, indices_.data() + indptr_[i]);
      std::copy_n(kept.data(), count, values.data() + indptr_[i]);
    }
  }
  view_ = dense;
  view_.is_csr = true;
  view_.ld = 0;
  view_.values = values.data();
  view_.indptr = indptr_.data();
  view_.indices = indices_.data();
}

}  // namespace kfu

#include "kfu/linear_normal.h"

#include <algorithm>
#include <stdexcept>

namespace kfu {

namespace {

/// Rows of a CSR matrix against t columns. `Fixed` is t where it is small, so that the sums of a
/// row stay in registers, and 0 where it is not.
template <class V, Index Fixed>
class CsrRows {
 public:
  CsrRows(const DataView& data, Index columns)
      : x_(data), values_(static_cast<const V*>(data.values)), columns_(columns) {}

  /// out = x_i · S
  void dot(Index i, const double* S, double* out) const {
    const Index last = x_.indptr[i + 1];
    Index k = x_.indptr[i];
    if constexpr (Fixed > 0) {
      // Several sums of few columns: the additions of one would wait for each other.
      constexpr Index kChains = Fixed >= 4 ? 1 : 4 / Fixed;
      double sums[kChains][Fixed] = {};
      for (; k + kChains <= last; k += kChains)
        for (Index c = 0; c < kChains; ++c) add_entry(k + c, S, sums[c]);
      for (; k < last; ++k) add_entry(k, S, sums[0]);
      for (Index j = 0; j < Fixed; ++j) {
        double sum = sums[0][j];
        for (Index c = 1; c < kChains; ++c) sum += sums[c][j];
        out[j] = sum;
      }
    } else {
      std::fill(out, out + t(), 0.0);
      for (; k < last; ++k) add_entry(k, S, out);
    }
  }

  /// S += x_i c
  void add(Index i, const double* c, double* S) const {
    for (Index k = x_.indptr[i]; k < x_.indptr[i + 1]; ++k) {
      const double value = static_cast<double>(values_[k]);
      double* to = S + x_.indices[k] * t();
      for (Index j = 0; j < t(); ++j) to[j] += value * c[j];
    }
  }

 private:
  Index t() const { return Fixed > 0 ? Fixed : columns_; }

  void add_entry(Index k, const double* S, double* sums) const {
    const double value = static_cast<double>(values_[k]);
    const double* from = S + x_.indices[k] * t();
    for (Index j = 0; j < t(); ++j) sums[j] += value * from[j];
  }

  DataView x_;
  const V* values_;
  Index columns_;
};

template <Index Fixed, class Use>
void with_values(const DataView& data, Index columns, Use&& use) {
  data.is_double ? use(CsrRows<double, Fixed>(data, columns))
                 : use(CsrRows<float, Fixed>(data, columns));
}

template <class Use>
void with_rows(const DataView& data, Index columns, Use&& use) {
  switch (columns) {
    case 1:
      return with_values<1>(data, columns, use);
    case 2:
      return with_values<2>(data, columns, use);
    case 3:
      return with_values<3>(data, columns, use);
    case 4:
      return with_values<4>(data, columns, use);
    default:
      return with_values<0>(data, columns, use);
  }
}

/// out = μ·S of every column, zeros without μ.
std::vector<double> at_mean(const double* mean, Index d, const double* S, Index columns) {
  std::vector<double> out(static_cast<std::size_t>(columns), 0.0);
  if (mean == nullptr) return out;
  for (Index k = 0; k < d; ++k)
    for (Index j = 0; j < columns; ++j) out[j] += mean[k] * S[k * columns + j];
  return out;
}

/// S −= μ total.
void take_mean(const double* mean, Index d, const std::vector<double>& total, double* S) {
  if (mean == nullptr) return;
  const Index columns = static_cast<Index>(total.size());
  for (Index k = 0; k < d; ++k)
    for (Index j = 0; j < columns; ++j) S[k * columns + j] -= mean[k] * total[j];
}

}  // namespace

NormalProducts::NormalProducts(const DataView& data, const double* root, const double* mean,
                               double ridge)
    : data_(data), root_(root), mean_(mean), ridge_(ridge) {
  if (!data.is_csr) throw std::invalid_argument("normal products are for CSR data");
}

void NormalProducts::of_rows(const double* P, Index columns, double* out) const {
  const Index n = data_.n, d = data_.d;
  std::vector<double> S(static_cast<std::size_t>(d * columns), 0.0);
  std::vector<double> scaled(static_cast<std::size_t>(columns));
  std::vector<double> total(static_cast<std::size_t>(columns), 0.0);
  with_rows(data_, columns, [&](const auto& rows) {
    for (Index i = 0; i < n; ++i) {
      const double root = root_ ? root_[i] : 1.0;
      for (Index j = 0; j < columns; ++j) {
        scaled[j] = root * P[i * columns + j];
        total[j] += scaled[j];
      }
      rows.add(i, scaled.data(), S.data());
    }
    take_mean(mean_, d, total, S.data());
    const std::vector<double> shift = at_mean(mean_, d, S.data(), columns);
    for (Index i = 0; i < n; ++i) {
      const double root = root_ ? root_[i] : 1.0;
      double* to = out + i * columns;
      rows.dot(i, S.data(), to);
      for (Index j = 0; j < columns; ++j)
        to[j] = root * (to[j] - shift[j]) + ridge_ * P[i * columns + j];
    }
  });
}

void NormalProducts::of_features(const double* P, Index columns, double* out) const {
  const Index n = data_.n, d = data_.d;
  std::vector<double> product(static_cast<std::size_t>(columns));
  std::vector<double> total(static_cast<std::size_t>(columns), 0.0);
  const std::vector<double> shift = at_mean(mean_, d, P, columns);
  for (Index k = 0; k < d * columns; ++k) out[k] = ridge_ * P[k];
  with_rows(data_, columns, [&](const auto& rows) {
    for (Index i = 0; i < n; ++i) {
      const double weight = root_ ? root_[i] * root_[i] : 1.0;
      rows.dot(i, P, product.data());
      for (Index j = 0; j < columns; ++j) {
        product[j] = weight * (product[j] - shift[j]);
        total[j] += product[j];
      }
      rows.add(i, product.data(), out);
    }
  });
  take_mean(mean_, d, total, out);
}

}  // namespace kfu

#include "kfu/linear_rows.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace kfu {

namespace {

constexpr Index kFewRows = 2048;  // below this, one thread
constexpr Index kParts = 16;      // of a sum over rows, whatever the number of threads
constexpr Index kOuterParts = 4;  // ... of a matrix
constexpr Index kPartFactor = 8;  // a part costs a vector of d; it has to be worth that

Index entries(const DataView& data) {
  if (!data.is_csr) return data.d;
  return data.n > 0 ? data.indptr[data.n] / data.n : 0;
}

}  // namespace

LinearRows::LinearRows(const DataView& data, std::vector<Index> points, int threads)
    : data_(data), points_(std::move(points)), threads_(std::max(1, threads)) {}

void LinearRows::squares(double* out) const {
  with_reader(data_, [&](const auto& rows) {
#pragma omp parallel for schedule(static) num_threads(threads_) if (size() > kFewRows)
    for (Index k = 0; k < size(); ++k) out[k] = rows.square(points_[k]);
  });
}

void LinearRows::apply(const Index* which, Index count, const double* w, double* out) const {
  with_reader(data_, [&](const auto& rows) {
#pragma omp parallel for schedule(static) num_threads(threads_) if (count > kFewRows)
    for (Index m = 0; m < count; ++m) out[m] = rows.dot(variable(which, m), w);
  });
}

void LinearRows::add(const Index* which, Index count, const double* coef, double* w) const {
  const Index d = data_.d;
  const Index worth = count * entries(data_) / (kPartFactor * std::max<Index>(d, 1));
  const Index parts = count > kFewRows ? std::clamp<Index>(worth, 1, kParts) : 1;
  std::vector<double> sums(static_cast<std::size_t>((parts - 1) * d), 0.0);
  std::fill(w, w + d, 0.0);
  with_reader(data_, [&](const auto& rows) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads_) if (parts > 1)
    for (Index part = 0; part < parts; ++part) {
      double* to = part == 0 ? w : sums.data() + (part - 1) * d;
      for (Index m = part * count / parts; m < (part + 1) * count / parts; ++m)
        if (coef[m] != 0.0) rows.add(variable(which, m), coef[m], to);
    }
  });
  for (Index part = 1; part < parts; ++part)
    for (Index k = 0; k < d; ++k) w[k] += sums[(part - 1) * d + k];
}

void LinearRows::add_outer(const Index* which, Index count, const double* weight,
                           const double* mean, double* H) const {
  data_.is_csr ? add_outer_csr(which, count, weight, mean, H)
               : add_outer_dense(which, count, weight, mean, H);
}

// Four rows at a time, so that a value of H is read and written once for all of them.
void LinearRows::add_outer_dense(const Index* which, Index count, const double* weight,
                                 const double* mean, double* H) const {
  constexpr Index kRows = 4;
  const Index d = data_.d, size = d * d;
  const Index parts = std::clamp<Index>(count / kFewRows, 1, kOuterParts);
  std::vector<double> sums(static_cast<std::size_t>((parts - 1) * size), 0.0);
  with_reader(data_, [&](const auto& rows) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads_) if (parts > 1)
    for (Index part = 0; part < parts; ++part) {
      double* to = part == 0 ? H : sums.data() + (part - 1) * size;
      std::vector<double> four(static_cast<std::size_t>(kRows * d));
      const Index end = (part + 1) * count / parts;
      for (Index m = part * count / parts; m < end; m += kRows) {
        std::fill(four.begin(), four.end(), 0.0);
        for (Index r = 0; r < std::min(kRows, end - m); ++r)
          if constexpr (std::decay_t<decltype(rows)>::is_dense)
            rows.copy(variable(which, m + r), mean, std::sqrt(weight[m + r]), four.data() + r * d);
        const double *x0 = four.data(), *x1 = x0 + d, *x2 = x1 + d, *x3 = x2 + d;
        for (Index a = 0; a < d; ++a) {
          double* row = to + a * d;
#pragma omp simd
          for (Index b = 0; b <= a; ++b)
            row[b] += (x0[a] * x0[b] + x1[a] * x1[b]) + (x2[a] * x2[b] + x3[a] * x3[b]);
        }
      }
    }
  });
  for (Index part = 1; part < parts; ++part)
    for (Index k = 0; k < size; ++k) H[k] += sums[(part - 1) * size + k];
}

// The mean would fill the rows; Σ weight (x − m)(x − m)ᵀ = Σ weight x xᵀ − (Σ weight) m mᵀ.
void LinearRows::add_outer_csr(const Index* which, Index count, const double* weight,
                               const double* mean, double* H) const {
  const Index d = data_.d;
  double total = 0.0;
  const auto add = [&](const auto* values) {
    for (Index m = 0; m < count; ++m) {
      const Index i = variable(which, m);
      total += weight[m];
      for (Index a = data_.indptr[i]; a < data_.indptr[i + 1]; ++a) {
        double* row = H + static_cast<Index>(data_.indices[a]) * d;
        const double c = weight[m] * static_cast<double>(values[a]);
        for (Index b = data_.indptr[i]; b <= a; ++b)
          row[data_.indices[b]] += c * static_cast<double>(values[b]);
      }
    }
  };
  data_.is_double ? add(static_cast<const double*>(data_.values))
                  : add(static_cast<const float*>(data_.values));
  for (Index a = 0; a < d; ++a)
    for (Index b = 0; b <= a; ++b) H[a * d + b] -= total * mean[a] * mean[b];
}

}  // namespace kfu

#include "kfu/linear_map.h"

namespace kfu {

namespace {

template <class V>
void add_row(const DataView& x, Index i, double c, double* w) {
  const V* values = static_cast<const V*>(x.values);
  if (x.is_csr) {
    for (Index k = x.indptr[i]; k < x.indptr[i + 1]; ++k)
      w[x.indices[k]] += c * static_cast<double>(values[k]);
    return;
  }
  const V* row = values + i * x.ld;
  for (Index k = 0; k < x.d; ++k) w[k] += c * static_cast<double>(row[k]);
}

template <class V>
double dot_row(const DataView& x, Index i, const double* w) {
  const V* values = static_cast<const V*>(x.values);
  double sum = 0.0;
  if (x.is_csr) {
    for (Index k = x.indptr[i]; k < x.indptr[i + 1]; ++k)
      sum += w[x.indices[k]] * static_cast<double>(values[k]);
    return sum;
  }
  const V* row = values + i * x.ld;
#pragma omp simd reduction(+ : sum)
  for (Index k = 0; k < x.d; ++k) sum += w[k] * static_cast<double>(row[k]);
  return sum;
}

}  // namespace

void LinearMap::add(const Index* points, const double* coef, Index count) {
  for (Index k = 0; k < count; ++k)
    data_.is_double ? add_row<double>(data_, points[k], coef[k], w_.data())
                    : add_row<float>(data_, points[k], coef[k], w_.data());
}

void LinearMap::apply(const Index* points, Index count, double* out) const {
  const double* w = w_.data();
#pragma omp parallel for schedule(static) num_threads(threads_) if (count > 2048)
  for (Index k = 0; k < count; ++k)
    out[k] = data_.is_double ? dot_row<double>(data_, points[k], w)
                             : dot_row<float>(data_, points[k], w);
}

}  // namespace kfu

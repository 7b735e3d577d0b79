#include "kfu/points.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace kfu {
namespace {

template <class T, class S>
void pack_as(const S* x, const ChannelSpec& spec, T* to, Index stride) {
  const bool is_plain = spec.kept.empty() && spec.mean.empty() && spec.scale.empty();
  if (is_plain) {
    for (Index k = 0; k < spec.depth; ++k) to[k * stride] = static_cast<T>(x[k]);
    return;
  }
  if (spec.kept.empty() && spec.scale.empty()) {
    const double* mean = spec.mean.data();
    for (Index k = 0; k < spec.depth; ++k) to[k * stride] = static_cast<T>(x[k] - mean[k]);
    return;
  }
  for (Index k = 0; k < spec.depth; ++k) {
    double value = x[spec.kept.empty() ? k : spec.kept[k]];
    if (!spec.mean.empty()) value -= spec.mean[k];
    if (!spec.scale.empty()) value *= spec.scale[k];
    to[k * stride] = static_cast<T>(value);
  }
}

}  // namespace

template <class T>
Points<T>::Points(const DataView& data, const std::vector<ChannelSpec>& specs,
                  const PanelOps<T>& ops, int threads)
    : data_(data),
      specs_(specs),
      ops_(ops),
      threads_(threads),
      entries_(data.is_csr ? specs.size() : 0),
      norms_(specs.size()) {
  if (data_.is_csr) {
    for (Index i = 0; i < data_.n; ++i) {
      max_count_ = std::max(max_count_, data_.indptr[i + 1] - data_.indptr[i]);
    }
    if (data_.n > 0) mean_count_ = static_cast<double>(data_.indptr[data_.n]) / data_.n;
    for (std::size_t c = 0; c < specs_.size(); ++c) make_entries(specs_[c], entries_[c]);
  }
  for (std::size_t c = 0; c < specs_.size(); ++c) {
    if (specs_[c].factor != 0.0) make_norms(static_cast<Index>(c));
  }
}

template <class T>
Points<T>::Points(std::unique_ptr<SparseCopy> data, const std::vector<ChannelSpec>& specs,
                  const PanelOps<T>& ops, int threads)
    : Points(data->view(), specs, ops, threads) {
  owned_ = std::move(data);
}

template <class T>
void Points<T>::pack(Index channel, Index point, T* to, Index stride) const {
  const ChannelSpec& spec = specs_[channel];
  if (data_.is_double) {
    pack_as(static_cast<const double*>(data_.values) + point * data_.ld, spec, to, stride);
  } else {
    pack_as(static_cast<const float*>(data_.values) + point * data_.ld, spec, to, stride);
  }
}

template <class T>
void Points<T>::fetch(Index point) const {
  if (data_.is_csr) return;
  constexpr Index kLine = 64, kMostBytes = 1024;  // the hardware sees what goes on from there
  const Index size = data_.is_double ? sizeof(double) : sizeof(float);
  const char* row = static_cast<const char*>(data_.values) + point * data_.ld * size;
  const Index bytes = std::min(data_.d * size, kMostBytes);
  for (Index k = 0; k < bytes; k += kLine) __builtin_prefetch(row + k);
}

template <class T>
SparseRow<T> Points<T>::sparse(Index channel, Index point) const {
  const Entries& e = entries_[channel];
  const Index begin = e.indptr[point];
  return {e.indices + begin, e.values + begin, e.indptr[point + 1] - begin};
}

template <class T>
T Points<T>::self_sum(Index channel, Index point, T* work) const {
  const ChannelSpec& spec = specs_[channel];
  if (data_.is_csr) {
    const SparseRow<T> row = sparse(channel, point);
    return ops_.self_sum(spec.statistic, true, row, spec.depth);
  }
  pack(channel, point, work, 1);
  return ops_.self_sum(spec.statistic, false, {nullptr, work, spec.depth}, spec.depth);
}

template <class T>
void Points<T>::make_entries(const ChannelSpec& spec, Entries& e) const {
  const Index begin = data_.n > 0 ? data_.indptr[0] : 0;
  const Index end = data_.n > 0 ? data_.indptr[data_.n] : 0;
  const auto* as_double = static_cast<const double*>(data_.values);
  const auto* as_float = static_cast<const float*>(data_.values);
  e.indices = data_.indices;
  e.indptr = data_.indptr;
  if (spec.scale.empty() && data_.is_double == std::is_same<T, double>::value) {
    e.values = static_cast<const T*>(data_.values);
    return;
  }
  e.owned_values.resize(end);
  e.values = e.owned_values.data();
  if (spec.scale.empty()) {
#pragma omp parallel for num_threads(threads_) schedule(static) if (end - begin > 100000)
    for (Index k = begin; k < end; ++k) {
      e.owned_values[k] = static_cast<T>(data_.is_double ? as_double[k] : as_float[k]);
    }
    return;
  }
  e.owned_indptr.assign(1, 0);
  e.owned_indptr.reserve(data_.n + 1);
  for (Index i = 0; i < data_.n; ++i) {
    for (Index k = data_.indptr[i]; k < data_.indptr[i + 1]; ++k) {
      const double scale = spec.scale[data_.indices[k]];
      if (scale == 0.0) continue;
      const double value = data_.is_double ? as_double[k] : as_float[k];
      e.owned_values[static_cast<Index>(e.owned_indices.size())] = static_cast<T>(value * scale);
      e.owned_indices.push_back(data_.indices[k]);
    }
    e.owned_indptr.push_back(static_cast<Index>(e.owned_indices.size()));
  }
  e.indices = e.owned_indices.data();
  e.indptr = e.owned_indptr.data();
}

template <class T>
void Points<T>::make_norms(Index channel) {
  Buffer<T>& norms = norms_[channel];
  norms.resize(data_.n);
  const T half = static_cast<T>(specs_[channel].factor / 2);
  constexpr Index block = 256;
  const Index n_blocks = (data_.n + block - 1) / block;
  const Index depth = data_.is_csr ? 0 : specs_[channel].depth;
  Buffer<T> work(threads_ * (depth + 16));
#pragma omp parallel num_threads(threads_) if (data_.n * (depth + 16) > 1000000)
  {
    T* mine = work.data() + omp_get_thread_num() * (depth + 16);
#pragma omp for schedule(static)
    for (Index b = 0; b < n_blocks; ++b) {
      for (Index i = b * block; i < std::min(data_.n, (b + 1) * block); ++i) {
        norms[i] = half * self_sum(channel, i, mine);
      }
    }
  }
}

// s = xx + zz − 2⟨x, z⟩ with xx, zz the norms as T has them. With unit roundoff u, in first order:
//   features  each is rounded to T, which changes 2⟨x, z⟩ by 2u · 2Σ|x_k z_k| ≤ 2u (‖x‖² + ‖z‖²);
//   the sum   term k is rounded c_k times: once by its own multiply-add, once by each later one of
//             its segment, and by each addition of a segment from its own on. The error of 2⟨x, z⟩
//             is at most 2u Σ c_k |x_k z_k| ≤ u Σ c_k x_k² + u Σ c_k z_k². Features that are absent
//             from a point are added exactly, so either sum need count its own point's entries
//             only. Without fused operations each product is rounded too: u (‖x‖² + ‖z‖²) more;
//   norms     float64 tells how far xx is from ‖x‖²; where T is float64 itself it is the error of
//             the same sum, u Σ c_k x_k² + 3u ‖x‖²;
//   the rest  xx + zz is rounded, and s, which is at most 2(‖x‖² + ‖z‖²): 3u (‖x‖² + ‖z‖²).
template <class T>
double Points<T>::rounding_of(Index channel, Index point, std::vector<double>& work) const {
  constexpr double u = std::numeric_limits<T>::epsilon() / 2;
  const ChannelSpec& spec = specs_[channel];
  const Index depth = spec.depth, segment = segment_of(depth);
  const Index n_segments = (depth + segment - 1) / std::max<Index>(segment, 1);
  double norm = 0.0, weighted = 0.0;
  const auto add = [&](Index roundings, double value) {
    norm += value * value;
    weighted += static_cast<double>(roundings) * (value * value);
  };
  const auto additions = [&](Index s) { return n_segments - std::max<Index>(s, 1); };
  bool is_exact = !std::is_same<T, double>::value;
  if (data_.is_csr) {
    const SparseRow<T> row = sparse(channel, point);
    const bool is_scaled = !spec.scale.empty(), is_rounded = data_.is_double && !is_scaled;
    const auto* as_double = static_cast<const double*>(data_.values);  // if is_rounded
    const Index begin = data_.indptr[point];
    Index s = n_segments - 1, later = 0;
    for (Index e = row.count; e-- > 0;) {
      for (++later; row.indices[e] < s * segment; --s) later = 1;
      add(later + additions(s),
          is_rounded ? as_double[begin + e] : static_cast<double>(row.values[e]));
    }
    is_exact = is_exact && !is_scaled;
  } else {
    if (data_.is_double) {
      pack_as(static_cast<const double*>(data_.values) + point * data_.ld, spec, work.data(), 1);
    } else {
      pack_as(static_cast<const float*>(data_.values) + point * data_.ld, spec, work.data(), 1);
    }
    for (Index s = 0; s < n_segments; ++s) {
      const Index end = std::min(depth, (s + 1) * segment);
      for (Index k = s * segment; k < end; ++k) add(end - k + additions(s), work[k]);
    }
  }
  const double off = std::fabs(static_cast<double>(norms_[channel][point]) - norm);
  return (is_exact ? off : u * weighted + 3.0 * u * norm) + u * weighted + 6.0 * u * norm;
}

template <class T>
std::vector<double> Points<T>::rounding(Index channel) const {
  std::vector<double> found(static_cast<std::size_t>(data_.n));
  const Index depth = data_.is_csr ? 16 : specs_[channel].depth;
  const int threads = data_.n * depth > 100000 ? threads_ : 1;
  std::vector<std::vector<double>> work(static_cast<std::size_t>(threads));
  for (std::vector<double>& each : work) each.resize(data_.is_csr ? 0 : depth);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (Index i = 0; i < data_.n; ++i)
    found[i] = rounding_of(channel, i, work[static_cast<std::size_t>(omp_get_thread_num())]);
  return found;
}

template class Points<float>;
template class Points<double>;

}  // namespace kfu

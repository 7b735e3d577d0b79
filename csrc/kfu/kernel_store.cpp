#include "kfu/kernel_store.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace kfu {

KernelStore::KernelStore(const DataView& data, const Kernel& kernel, int threads, Simd simd)
    : copy_(!is_lookup(kernel) && is_mostly_zero(data) ? std::make_unique<SparseCopy>(data, threads)
                                                       : nullptr),
      data_(copy_ ? copy_->view() : data),
      kernel_(kernel),
      threads_(threads),
      simd_(simd),
      is_linear_(is_plain_linear(kernel)) {}

template <>
const Gram<float>& KernelStore::gram<float>() {
  const std::lock_guard<std::mutex> lock(making_);
  if (!gram32_) gram32_ = make_gram<float>(data_, kernel_, threads_, simd_);
  return *gram32_;
}

template <>
const Gram<double>& KernelStore::gram<double>() {
  const std::lock_guard<std::mutex> lock(making_);
  if (!gram64_) gram64_ = make_gram<double>(data_, kernel_, threads_, simd_);
  return *gram64_;
}

void KernelStore::drop_float32() {
  const std::lock_guard<std::mutex> lock(making_);
  gram32_.reset();
}

void KernelStore::share_rows(double bytes) {
  rows_.tier = std::make_shared<RowTier<float>>(data_.n, bytes, threads_,
                                                form_of_rows(gram<float>(), value_cost()));
  rows_.columns = gram<float>().make_columns(data_.n);
  std::vector<Index> all(static_cast<std::size_t>(data_.n));
  std::iota(all.begin(), all.end(), Index{0});
  rows_.columns->assign(0, all.data(), data_.n);
}

}  // namespace kfu

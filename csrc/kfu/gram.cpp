#include "kfu/gram.h"

#include <omp.h>

#include "kfu/gram_kinds.h"

namespace kfu {

template <class T>
std::unique_ptr<Gram<T>> make_gram(const DataView& data, const Kernel& kernel, int threads,
                                   Simd simd) {
  check_kernel(kernel, data.d);
  if (threads <= 0) threads = omp_get_max_threads();
  return is_lookup(kernel) ? make_lookup_gram<T>(data, kernel.terms[0].weight, simd)
                           : make_panel_gram<T>(data, kernel, threads, simd);
}

template std::unique_ptr<Gram<float>> make_gram<float>(const DataView&, const Kernel&, int, Simd);
template std::unique_ptr<Gram<double>> make_gram<double>(const DataView&, const Kernel&, int, Simd);

}  // namespace kfu

// Choice of the instruction set, once per Gram.
#include <stdexcept>

#include "kfu/panel.h"

namespace kfu {

bool has_simd(Simd simd) {
#if defined(__x86_64__)
  switch (simd) {
    case Simd::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Simd::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    default:
      return true;
  }
#else
  return simd == Simd::baseline || simd == Simd::best;
#endif
}

template <class T>
const PanelOps<T>& panel_ops(Simd simd) {
  if (simd == Simd::best) {
    simd = has_simd(Simd::avx512) ? Simd::avx512
           : has_simd(Simd::avx2) ? Simd::avx2
                                  : Simd::baseline;
  }
  if (!has_simd(simd)) {
    throw std::invalid_argument("this processor does not have the instruction set asked for");
  }
  switch (simd) {
    case Simd::avx512:
      return *PanelTables<T>::avx512();
    case Simd::avx2:
      return *PanelTables<T>::avx2();
    default:
      return *PanelTables<T>::baseline();
  }
}

template const PanelOps<float>& panel_ops<float>(Simd);
template const PanelOps<double>& panel_ops<double>(Simd);

}  // namespace kfu

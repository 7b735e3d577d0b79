#include "kfu/smo_loops.h"

#include "kfu/smo_loops_isa.h"

namespace kfu {

template <>
const SmoLoops<float>& smo_loops<float>(Simd simd) {
#if defined(__x86_64__)
  if (simd == Simd::avx512) return smo_loops_avx512_f32();
  if (simd == Simd::avx2) return smo_loops_avx2_f32();
#endif
  (void)simd;
  return smo_loops_baseline_f32();
}

template <>
const SmoLoops<double>& smo_loops<double>(Simd simd) {
#if defined(__x86_64__)
  if (simd == Simd::avx512) return smo_loops_avx512_f64();
  if (simd == Simd::avx2) return smo_loops_avx2_f64();
#endif
  (void)simd;
  return smo_loops_baseline_f64();
}

}  // namespace kfu

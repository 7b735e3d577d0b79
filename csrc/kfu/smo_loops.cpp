#include "kfu/smo_loops.h"

#include "kfu/smo_loops_isa.h"

namespace kfu {

namespace {

SmoLoopTables tables(Simd simd) {
#if defined(__x86_64__)
  if (simd == Simd::avx512) return smo_loops_avx512(__builtin_cpu_supports("avx512vbmi2"));
  if (simd == Simd::avx2) return smo_loops_avx2();
#endif
  (void)simd;
  return smo_loops_baseline();
}

}  // namespace

template <>
const SmoLoops<float, float>& smo_loops<float, float>(Simd simd) {
  return tables(simd).single;
}

template <>
const SmoLoops<float, double>& smo_loops<float, double>(Simd simd) {
  return tables(simd).mixed;
}

template <>
const SmoLoops<double, double>& smo_loops<double, double>(Simd simd) {
  return tables(simd).full;
}

template <>
const OuterLoops<float>& outer_loops<float>(Simd simd) {
  return tables(simd).outer_single;
}

template <>
const OuterLoops<double>& outer_loops<double>(Simd simd) {
  return tables(simd).outer_full;
}

const FixedLoops& fixed_loops(Simd simd) { return tables(simd).fixed; }

const CoarseLoops& coarse_loops(Simd simd) { return tables(simd).coarse; }

}  // namespace kfu

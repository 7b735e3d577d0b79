// The loops of subproblem, outer loop and rows in fixed point for the avx512 instruction set.
#include "kfu/coarse_rows.h"
#include "kfu/fixed_rows.h"
#include "kfu/outer_loops.h"
#include "kfu/smo_loops.h"
#include "kfu/smo_loops_isa.h"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")
#define KFU_VECTOR_BYTES 64

namespace kfu {
namespace avx512_loops {
// clang-format off
#include "kfu/smo_loops.inc"
#include "kfu/outer_loops.inc"
#include "kfu/fixed_rows.inc"
#include "kfu/coarse_rows.inc"
// clang-format on
}  // namespace avx512_loops

SmoLoopTables smo_loops_avx512(bool has_vbmi2) {
  using namespace avx512_loops;
  return {kLoops<float, float>,
          kLoops<float, double>,
          kLoops<double, double>,
          kOuterLoops<float>,
          kOuterLoops<double>,
          has_vbmi2 ? kFixedLoopsVbmi2 : kFixedLoops,
          has_vbmi2 ? kCoarseLoopsVbmi2 : kCoarseLoops};
}

}  // namespace kfu
#pragma GCC pop_options
#endif

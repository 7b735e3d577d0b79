// The loops of subproblem, outer loop and rows in fixed point for the avx2 instruction set.
#include "kfu/coarse_rows.h"
#include "kfu/fixed_rows.h"
#include "kfu/outer_loops.h"
#include "kfu/smo_loops.h"
#include "kfu/smo_loops_isa.h"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define KFU_VECTOR_BYTES 32

namespace kfu {
namespace avx2_loops {
// clang-format off
#include "kfu/smo_loops.inc"
#include "kfu/outer_loops.inc"
#include "kfu/fixed_rows.inc"
#include "kfu/coarse_rows.inc"
// clang-format on
}  // namespace avx2_loops

SmoLoopTables smo_loops_avx2() {
  using namespace avx2_loops;
  return {kLoops<float, float>, kLoops<float, double>, kLoops<double, double>,
          kOuterLoops<float>,   kOuterLoops<double>,   kFixedLoops,
          kCoarseLoops};
}

}  // namespace kfu
#pragma GCC pop_options
#endif

// The per-instruction-set tables that smo_loops(), outer_loops(), fixed_loops() and
// coarse_loops() choose from.
#pragma once

#include "kfu/coarse_rows.h"
#include "kfu/fixed_rows.h"
#include "kfu/outer_loops.h"
#include "kfu/smo_loops.h"

namespace kfu {

/// Rows and gradient in float32; rows in float32, gradient in float64; both in float64. Then those
/// of the outer loop, by rows, and of rows in fixed point and of two bytes a value.
struct SmoLoopTables {
  const SmoLoops<float, float>& single;
  const SmoLoops<float, double>& mixed;
  const SmoLoops<double, double>& full;
  const OuterLoops<float>& outer_single;
  const OuterLoops<double>& outer_full;
  const FixedLoops& fixed;
  const CoarseLoops& coarse;
};

SmoLoopTables smo_loops_baseline();
#if defined(__x86_64__)
SmoLoopTables smo_loops_avx2();
/// `has_vbmi2`: the processor has AVX512_VBMI2 as well.
SmoLoopTables smo_loops_avx512(bool has_vbmi2);
#endif

}  // namespace kfu

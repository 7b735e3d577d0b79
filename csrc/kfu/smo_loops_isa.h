// The per-instruction-set tables that smo_loops() chooses from.
#pragma once

#include "kfu/smo_loops.h"

namespace kfu {

/// Rows and gradient in float32; rows in float32, gradient in float64; both in float64.
struct SmoLoopTables {
  const SmoLoops<float, float>& single;
  const SmoLoops<float, double>& mixed;
  const SmoLoops<double, double>& full;
};

SmoLoopTables smo_loops_baseline();
#if defined(__x86_64__)
SmoLoopTables smo_loops_avx2();
SmoLoopTables smo_loops_avx512();
#endif

}  // namespace kfu

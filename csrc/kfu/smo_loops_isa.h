// The per-instruction-set tables that smo_loops() chooses from.
#pragma once

#include "kfu/smo_loops.h"

namespace kfu {

const SmoLoops<float>& smo_loops_baseline_f32();
const SmoLoops<double>& smo_loops_baseline_f64();
#if defined(__x86_64__)
const SmoLoops<float>& smo_loops_avx2_f32();
const SmoLoops<double>& smo_loops_avx2_f64();
const SmoLoops<float>& smo_loops_avx512_f32();
const SmoLoops<double>& smo_loops_avx512_f64();
#endif

}  // namespace kfu

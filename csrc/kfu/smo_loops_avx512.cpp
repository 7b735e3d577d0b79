// The subproblem loops for the avx512 instruction set.
#include "kfu/smo_loops.h"
#include "kfu/smo_loops_isa.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")
#define KFU_VECTOR_BYTES 64

namespace kfu {
namespace avx512_loops {
#include "kfu/smo_loops.inc"
}  // namespace avx512_loops

const SmoLoops<float>& smo_loops_avx512_f32() { return avx512_loops::kLoops<float>; }
const SmoLoops<double>& smo_loops_avx512_f64() { return avx512_loops::kLoops<double>; }

}  // namespace kfu
#pragma GCC pop_options
#endif

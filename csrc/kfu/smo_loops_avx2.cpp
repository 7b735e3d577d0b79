// The subproblem loops for the avx2 instruction set.
#include "kfu/smo_loops.h"
#include "kfu/smo_loops_isa.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define KFU_VECTOR_BYTES 32

namespace kfu {
namespace avx2_loops {
#include "kfu/smo_loops.inc"
}  // namespace avx2_loops

SmoLoopTables smo_loops_avx2() {
  using namespace avx2_loops;
  return {kLoops<float, float>, kLoops<float, double>, kLoops<double, double>};
}

}  // namespace kfu
#pragma GCC pop_options
#endif

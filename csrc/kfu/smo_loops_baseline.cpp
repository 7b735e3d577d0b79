// The loops of subproblem, outer loop and rows in fixed point for the baseline instruction set.
#include "kfu/coarse_rows.h"
#include "kfu/fixed_rows.h"
#include "kfu/outer_loops.h"
#include "kfu/smo_loops.h"
#include "kfu/smo_loops_isa.h"

#define KFU_VECTOR_BYTES 16

namespace kfu {
namespace baseline_loops {
// clang-format off
#include "kfu/smo_loops.inc"
#include "kfu/outer_loops.inc"
#include "kfu/fixed_rows.inc"
#include "kfu/coarse_rows.inc"
// clang-format on
}  // namespace baseline_loops

SmoLoopTables smo_loops_baseline() {
  using namespace baseline_loops;
  return {kLoops<float, float>, kLoops<float, double>, kLoops<double, double>,
          kOuterLoops<float>,   kOuterLoops<double>,   kFixedLoops,
          kCoarseLoops};
}

}  // namespace kfu

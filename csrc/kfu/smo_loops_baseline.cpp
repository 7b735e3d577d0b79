// The subproblem loops for the baseline instruction set.
#include "kfu/smo_loops.h"
#include "kfu/smo_loops_isa.h"

#define KFU_VECTOR_BYTES 16

namespace kfu {
namespace baseline_loops {
#include "kfu/smo_loops.inc"
}  // namespace baseline_loops

SmoLoopTables smo_loops_baseline() {
  using namespace baseline_loops;
  return {kLoops<float, float>, kLoops<float, double>, kLoops<double, double>};
}

}  // namespace kfu

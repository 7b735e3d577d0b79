// The subproblem loops for the baseline instruction set.
#include "kfu/smo_loops.h"
#include "kfu/smo_loops_isa.h"

#define KFU_VECTOR_BYTES 16

namespace kfu {
namespace baseline_loops {
#include "kfu/smo_loops.inc"
}  // namespace baseline_loops

const SmoLoops<float>& smo_loops_baseline_f32() { return baseline_loops::kLoops<float>; }
const SmoLoops<double>& smo_loops_baseline_f64() { return baseline_loops::kLoops<double>; }

}  // namespace kfu

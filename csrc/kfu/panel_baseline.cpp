// Panel code for any processor: 16-byte registers, no fused multiply-add.
#include "kfu/panel.h"

#include <cstddef>
#include <cstdint>

#define KFU_VECTOR_BYTES 16
#define KFU_HAS_FMA 0
#define KFU_MAX_GROUP 6

namespace kfu {
namespace panel_baseline {
#include "kfu/panel_impl.inc"

static constexpr PanelOps<float> float_ops = make_ops<float>(Simd::baseline);
static constexpr PanelOps<double> double_ops = make_ops<double>(Simd::baseline);
}  // namespace panel_baseline
}  // namespace kfu

namespace kfu {
template <>
const PanelOps<float>* PanelTables<float>::baseline() {
  return &panel_baseline::float_ops;
}
template <>
const PanelOps<double>* PanelTables<double>::baseline() {
  return &panel_baseline::double_ops;
}
}  // namespace kfu

// Panel code for processors with AVX2 and FMA.
#include "kfu/panel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>

#define KFU_VECTOR_BYTES 32
#define KFU_HAS_FMA 1
#define KFU_MAX_GROUP 6

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace kfu {
namespace panel_avx2 {
#include "kfu/panel_impl.inc"

static constexpr PanelOps<float> float_ops = make_ops<float>(Simd::avx2);
static constexpr PanelOps<double> double_ops = make_ops<double>(Simd::avx2);
}  // namespace panel_avx2
}  // namespace kfu
#pragma GCC pop_options

namespace kfu {
template <>
const PanelOps<float>* PanelTables<float>::avx2() {
  return &panel_avx2::float_ops;
}
template <>
const PanelOps<double>* PanelTables<double>::avx2() {
  return &panel_avx2::double_ops;
}
}  // namespace kfu
#else
namespace kfu {
template <>
const PanelOps<float>* PanelTables<float>::avx2() {
  return nullptr;
}
template <>
const PanelOps<double>* PanelTables<double>::avx2() {
  return nullptr;
}
}  // namespace kfu
#endif

// Panel code for processors with AVX-512 (F, DQ, VL, BW).
#include "kfu/panel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>

#define KFU_VECTOR_BYTES 64
#define KFU_HAS_FMA 1
#define KFU_MAX_GROUP 12

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512dq,avx512vl,avx512bw")
namespace kfu {
namespace panel_avx512 {
#include "kfu/panel_impl.inc"

static constexpr PanelOps<float> float_ops = make_ops<float>(Simd::avx512);
static constexpr PanelOps<double> double_ops = make_ops<double>(Simd::avx512);
}  // namespace panel_avx512
}  // namespace kfu
#pragma GCC pop_options

namespace kfu {
template <>
const PanelOps<float>* PanelTables<float>::avx512() {
  return &panel_avx512::float_ops;
}
template <>
const PanelOps<double>* PanelTables<double>::avx512() {
  return &panel_avx512::double_ops;
}
}  // namespace kfu
#else
namespace kfu {
template <>
const PanelOps<float>* PanelTables<float>::avx512() {
  return nullptr;
}
template <>
const PanelOps<double>* PanelTables<double>::avx512() {
  return nullptr;
}
}  // namespace kfu
#endif

// The instruction sets that this processor has, for tests that go over all of them.
#ifndef KFU_TESTS_INSTRUCTION_SETS_H_
#define KFU_TESTS_INSTRUCTION_SETS_H_

#include <vector>

#include "kfu/panel.h"

namespace kfu_test {

inline std::vector<kfu::Simd> instruction_sets() {
  std::vector<kfu::Simd> found;
  for (const kfu::Simd simd : {kfu::Simd::baseline, kfu::Simd::avx2, kfu::Simd::avx512})
    if (kfu::has_simd(simd)) found.push_back(simd);
  return found;
}

}  // namespace kfu_test

#endif  // KFU_TESTS_INSTRUCTION_SETS_H_

// Plain types shared by the whole core.
#pragma once

#include <cstdint>

namespace kfu {

using Index = std::int64_t;

/// Borrowed view of a data matrix: dense row-major or CSR, float64 or float32 values.
/// The owner (a NumPy array on the Python side) outlives every object built on the view.
struct DataView {
  Index n = 0;                   ///< points (rows)
  Index d = 0;                   ///< features (columns)
  const void* values = nullptr;  ///< dense: n × ld row-major; CSR: indptr[n] values
  bool is_double = true;         ///< element type of `values`
  bool is_csr = false;
  Index ld = 0;                           ///< dense only: distance between rows, in elements
  const Index* indptr = nullptr;          ///< CSR only, n + 1
  const std::int32_t* indices = nullptr;  ///< CSR only, increasing within a row, < d
};

/// Instruction set of the panel kernels; `best` asks for the widest one the processor has.
enum class Simd { baseline, avx2, avx512, best };

}  // namespace kfu

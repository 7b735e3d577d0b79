// The vector loops of the outer loop and of the tiers of its cache, one set per instruction set.
//
// Masks are those of smo_loops.h. Arrays need not be padded, but for the block of mirror(). (The
// sum of violations depends on the vector width in its last bits.) T is the type of the rows of K.
#pragma once

#include <cstdint>

#include "kfu/types.h"

namespace kfu {

/// How many variables are on the wrong side of their threshold, and by how much altogether.
struct Violations {
  double sum;
  Index count;
};

template <class T>
struct OuterLoops {
  /// out[k] = min(F[k] + up_mask[k] − theta, theta − F[k] − low_mask[k]): negative where k
  /// violates.
  Violations (*satisfactions)(const double* F, const double* up_mask, const double* low_mask,
                              double theta, Index m, double* out);
  /// rounds[k] gains 1 where satisfaction[k] > far and becomes 0 elsewhere. Returns how many are at
  /// least `least`.
  Index (*count_settled)(const double* satisfaction, double far, int* rounds, int least, Index m);
  /// Stable partition of a row: values whose bit is set (bit k % 16 of stays[k / 16]) move to the
  /// front, the others to `leaving`, which has room for m + 16. Returns how many stay.
  Index (*part)(T* values, const std::uint16_t* stays, Index m, T* leaving);
  /// A tile of 16 × 16 of a square block: block[row + r][column + c] = block[column + c][row + r]
  /// for the bits r of `rows` and c of `columns`, which have no entry of the block in common. All
  /// 16 entries of a line of the tile are read, of `rows` also written: no other thread may write
  /// them.
  void (*mirror)(T* block, Index ld, Index row, unsigned rows, Index column, unsigned columns);
};

/// Requires: `simd` is not `best` and is supported by this processor.
template <class T>
const OuterLoops<T>& outer_loops(Simd simd);

}  // namespace kfu

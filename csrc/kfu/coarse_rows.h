// Rows of kernel values in [0, 1] kept in two bytes a value.
//
// A value is kept as the nearest multiple of 2^-16 or so: half the memory of float32 is got,
// written, read and given back. What is lost, up to 7.6e-6 of a value, is far more than float32
// arithmetic loses; whoever sums such rows keeps account of it and forms the sum anew from exact
// values when it matters (dual_solver_refresh.cpp). Values that are computed are used as they are.
#pragma once

#include <cmath>
#include <cstdint>

#include "kfu/types.h"

namespace kfu {

constexpr Index kCoarseColumns = 64;  // that are written together: two cache lines
constexpr float kCoarseOne = 65535.0f;
constexpr double kCoarseUnit = 1.0 / 65535.0;
// Of a value that is kept: half a unit, and what float32 arithmetic adds on the way to it.
constexpr double kCoarseError = 0.51 * kCoarseUnit;

inline std::uint16_t coarse_units(float value) {
  return static_cast<std::uint16_t>(std::lrint(value * kCoarseOne));
}

/// The loops over such rows, one set per instruction set.
struct CoarseLoops {
  /// F[c] += Σ_r delta[r]·rows[r][c] for columns c in [first, last), in the order of r.
  void (*add_rows)(double* F, const std::uint16_t* const* rows, const double* delta, Index n_rows,
                   Index first, Index last);
  /// Stable partition of a row: values whose bit is set (bit k % 16 of stays[k / 16]) move to the
  /// front, the others to `leaving`, which has room for m + 32. Returns how many stay.
  Index (*part)(std::uint16_t* row, const std::uint16_t* stays, Index m, std::uint16_t* leaving);
};

/// Requires: `simd` is not `best` and is supported by this processor.
const CoarseLoops& coarse_loops(Simd simd);

}  // namespace kfu

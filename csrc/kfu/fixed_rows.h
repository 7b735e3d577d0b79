// Rows of kernel values in [0, 1] as they are kept: fixed point, three bytes a value.
//
// A value is kept as a multiple of a unit that is a little more than 2^-24. Three quarters of the
// memory of float32 are got, written, read and given back, and the error is of the size of what
// float32 arithmetic leaves in a value near 1. Sums that use such rows round every value, kept or
// not, so that a value is the same each time it is used and errors do not add up along the way.
//
// Blocks of 64 columns are three cache lines: rows are read and written in one stream.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kfu/types.h"

namespace kfu {

constexpr Index kFixedColumns = 64;  // of a block
// Units of 1, as float32 has it. Less than 2^24: sums of weighted kernels may round to more than 1.
constexpr float kFixedOne = 16777152.0f;
constexpr double kFixedUnit = 1.0 / 16777152.0;
// Of a value, by rounding it: value · kFixedOne is rounded by float32 before it is to an integer.
constexpr double kFixedError = 0.75 * kFixedUnit;

/// Value c is 256·high[c] + low[c] units.
struct FixedBlock {
  std::uint16_t high[kFixedColumns];
  std::uint8_t low[kFixedColumns];
};
static_assert(sizeof(FixedBlock) == 192, "three cache lines");

constexpr Index fixed_blocks(Index columns) {
  return (columns + kFixedColumns - 1) / kFixedColumns;
}

/// As float32 has it: for a subproblem, not for F, whose sums are of units.
inline float fixed_value(const FixedBlock* row, Index column) {
  const FixedBlock& block = row[column / kFixedColumns];
  const Index c = column % kFixedColumns;
  return static_cast<float>(256 * std::int32_t{block.high[c]} + std::int32_t{block.low[c]}) *
         static_cast<float>(kFixedUnit);
}

inline void set_fixed_value(FixedBlock* row, Index column, float value) {
  const long units = std::lrint(value * kFixedOne);
  FixedBlock& block = row[column / kFixedColumns];
  block.high[column % kFixedColumns] = static_cast<std::uint16_t>(units >> 8);
  block.low[column % kFixedColumns] = static_cast<std::uint8_t>(units);
}

/// Columns of a row that was taken apart: those that stay, and the others.
struct FixedParts {
  std::uint16_t *high, *other_high;
  std::uint8_t *low, *other_low;
};

struct FixedCounts {
  Index staying, leaving;
};

/// Memory for them.
class FixedScratch {
 public:
  void resize(Index columns) {
    size_ = static_cast<std::size_t>(columns + kFixedColumns);
    high_.resize(2 * size_);
    low_.resize(2 * size_);
  }
  FixedParts parts() {
    return {high_.data(), high_.data() + size_, low_.data(), low_.data() + size_};
  }

 private:
  std::size_t size_ = 0;
  std::vector<std::uint16_t> high_;
  std::vector<std::uint8_t> low_;
};

/// The loops over such rows, one set per instruction set.
struct FixedLoops {
  /// F[c] += Σ_r delta[r]·rows[r][c] for columns c in [first, last), in the order of r.
  void (*add_rows)(double* F, const FixedBlock* const* rows, const double* delta, Index n_rows,
                   Index first, Index last);
  /// Stable partition of columns [0, m): those whose bit is set (bit c % 16 of stays[c / 16]) move
  /// to the front; the others follow, or are lost unless keeps_all. Returns how many stay.
  /// `parts` have room for m + 64 columns each.
  Index (*part)(FixedBlock* row, const std::uint16_t* stays, Index m, bool keeps_all,
                const FixedParts& parts);
};

/// Requires: `simd` is not `best` and is supported by this processor.
const FixedLoops& fixed_loops(Simd simd);

}  // namespace kfu

// How rows of kernel values are kept.
#pragma once

#include <cstdint>

#include "kfu/coarse_rows.h"
#include "kfu/fixed_rows.h"
#include "kfu/types.h"

namespace kfu {

enum class RowForm {
  floating,  ///< as they are
  fixed,     ///< three bytes a value (fixed_rows.h)
  coarse,    ///< two bytes a value (coarse_rows.h)
};

/// What of a value is added up.
enum class Part {
  whole,
  lost,  ///< what a coarse row is short of it (coarse_rows.h); for float values in [0, 1]
};

/// A row that is kept, in one of these forms; or none.
template <class T>
struct KeptRow {
  T* floating = nullptr;
  FixedBlock* fixed = nullptr;
  std::uint16_t* coarse = nullptr;

  explicit operator bool() const {
    return floating != nullptr || fixed != nullptr || coarse != nullptr;
  }
  bool operator==(const KeptRow& other) const {
    return floating == other.floating && fixed == other.fixed && coarse == other.coarse;
  }
};

}  // namespace kfu

// Asks for the pages of fresh memory at once.
//
// Memory of 4 KiB pages costs a trap for each page when it is first written. Asking for the pages
// of a slab together spares the traps: measured 0.33 s a gigabyte against 0.58 s, on one core.
#pragma once

#include <vector>

#include "kfu/types.h"

namespace kfu {

struct MemoryRange {
  void* begin;
  Index bytes;
};

/// Makes the ranges resident, shared out among the threads. Nothing happens where the system does
/// not know how; contents are undefined as before.
void prefault(const std::vector<MemoryRange>& ranges, int threads);
inline void prefault(void* begin, Index bytes, int threads) { prefault({{begin, bytes}}, threads); }

}  // namespace kfu

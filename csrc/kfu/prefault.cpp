#include "kfu/prefault.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdint>

namespace kfu {

#if defined(__linux__)

namespace {

#if defined(MADV_POPULATE_WRITE)
constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
constexpr int kPopulate = 23;  // Linux 5.14; older kernels answer that they do not know it
#endif
constexpr std::uintptr_t kPage = 4096;
constexpr std::uintptr_t kPiece = std::uintptr_t{1} << 20;

}  // namespace

void prefault(const std::vector<MemoryRange>& ranges, int threads) {
  struct Piece {
    std::uintptr_t from, to;
  };
  std::vector<Piece> pieces;
  for (const MemoryRange& range : ranges) {
    const auto address = reinterpret_cast<std::uintptr_t>(range.begin);
    const std::uintptr_t first = (address + kPage - 1) / kPage * kPage;
    const std::uintptr_t last =
        (address + static_cast<std::uintptr_t>(range.bytes)) / kPage * kPage;
    for (std::uintptr_t from = first; from < last; from += kPiece)
      pieces.push_back({from, std::min(last, from + kPiece)});
  }
  const Index count = static_cast<Index>(pieces.size());
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (count > 1)
  for (Index p = 0; p < count; ++p)
    (void)madvise(reinterpret_cast<void*>(pieces[p].from), pieces[p].to - pieces[p].from,
                  kPopulate);
}

#else

void prefault(const std::vector<MemoryRange>&, int) {}

#endif

}  // namespace kfu

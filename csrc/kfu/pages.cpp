#include "kfu/pages.h"

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
// What one page table holds. Pieces end at multiples of it: two threads that fill the same table
// wait for its lock (a seventh of the time).
constexpr std::uintptr_t kTable = std::uintptr_t{2} << 20;

void advise(const std::vector<MemoryRange>& ranges, int threads, int advice,
            std::uintptr_t tables) {
  struct Piece {
    std::uintptr_t from, to;
  };
  std::vector<Piece> pieces;
  const std::uintptr_t piece = tables * kTable;
  for (const MemoryRange& range : ranges) {
    const auto address = reinterpret_cast<std::uintptr_t>(range.begin);
    const std::uintptr_t last =
        (address + static_cast<std::uintptr_t>(range.bytes)) / kPage * kPage;
    for (std::uintptr_t from = (address + kPage - 1) / kPage * kPage; from < last;) {
      const std::uintptr_t to = std::min(last, (from / piece + 1) * piece);
      pieces.push_back({from, to});
      from = to;
    }
  }
  const Index count = static_cast<Index>(pieces.size());
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (count > 1)
  for (Index p = 0; p < count; ++p)
    (void)madvise(reinterpret_cast<void*>(pieces[p].from), pieces[p].to - pieces[p].from, advice);
}

}  // namespace

void prefault(const std::vector<MemoryRange>& ranges, int threads) {
  advise(ranges, threads, kPopulate, 1);
}

void give_back(const std::vector<MemoryRange>& ranges, int threads) {
  advise(ranges, threads, MADV_DONTNEED, 4);
}

#else

void prefault(const std::vector<MemoryRange>&, int) {}
void give_back(const std::vector<MemoryRange>&, int) {}

#endif

}  // namespace kfu

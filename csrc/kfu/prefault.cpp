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
constexpr Index kPiece = Index{1} << 20;

}  // namespace

void prefault(void* begin, Index bytes, int threads) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (address + kPage - 1) / kPage * kPage;
  const std::uintptr_t last = (address + static_cast<std::uintptr_t>(bytes)) / kPage * kPage;
  if (last <= first) return;
  const Index n_pieces = (static_cast<Index>(last - first) + kPiece - 1) / kPiece;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (n_pieces > 1)
  for (Index p = 0; p < n_pieces; ++p) {
    const std::uintptr_t from = first + static_cast<std::uintptr_t>(p * kPiece);
    const std::uintptr_t to = std::min(last, from + static_cast<std::uintptr_t>(kPiece));
    (void)madvise(reinterpret_cast<void*>(from), to - from, kPopulate);
  }
}

#else

void prefault(void*, Index, int) {}

#endif

}  // namespace kfu

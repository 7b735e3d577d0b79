#include "kfu/text_blocks.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

namespace kfu::text {
namespace {

constexpr size_t kParallelBytes = size_t{1} << 22;  // counting less is quicker than waking threads

using Bytes = uint8_t __attribute__((vector_size(16)));

Bytes filled_with(char c) {
  Bytes result = {};
  return result + static_cast<uint8_t>(c);
}

int64_t sum_of(Bytes lanes) {
  int64_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += lanes[i];
  return sum;
}

struct Counts {
  int64_t feeds = 0;
  int64_t separators = 0;
};

// Byte counters of 16 lanes are emptied before they can wrap, after 255 vectors.
Counts count_bytes(const char* p, const char* end, char separator) {
  Counts counts;
  const Bytes feed = filled_with('\n');
  const Bytes mark = filled_with(separator);
  while (end - p >= 16) {
    const int64_t vectors = std::min<int64_t>(255, (end - p) / 16);
    Bytes feeds = {};
    Bytes marks = {};
    for (int64_t i = 0; i < vectors; ++i, p += 16) {
      Bytes text;
      std::memcpy(&text, p, sizeof text);
      feeds -= reinterpret_cast<Bytes>(text == feed);
      marks -= reinterpret_cast<Bytes>(text == mark);
    }
    counts.feeds += sum_of(feeds);
    counts.separators += sum_of(marks);
  }
  for (; p < end; ++p) {
    counts.feeds += *p == '\n' ? 1 : 0;
    counts.separators += *p == separator ? 1 : 0;
  }
  return counts;
}

}  // namespace

Blocks split_blocks(const char* data, size_t size, char separator, size_t block_bytes,
                    int threads) {
  Blocks result;
  block_bytes = std::max<size_t>(block_bytes, 1);
  for (size_t begin = 0; begin < size;) {
    Block block;
    block.begin = begin;
    block.end = size;
    if (size - begin > block_bytes) {
      const size_t from = begin + block_bytes - 1;
      const void* feed = std::memchr(data + from, '\n', size - from);
      if (feed != nullptr) block.end = static_cast<const char*>(feed) - data + 1;
    }
    begin = block.end;
    result.blocks.push_back(block);
  }
  const int64_t n_blocks = static_cast<int64_t>(result.blocks.size());
#pragma omp parallel for schedule(static) num_threads(threads) if (size > kParallelBytes)
  for (int64_t b = 0; b < n_blocks; ++b) {
    Block& block = result.blocks[b];
    const Counts counts = count_bytes(data + block.begin, data + block.end, separator);
    block.lines = counts.feeds + (data[block.end - 1] == '\n' ? 0 : 1);
    block.separators = counts.separators;
  }
  for (Block& block : result.blocks) {
    block.first_line = result.lines;
    block.first_entry = result.separators;
    result.lines += block.lines;
    result.separators += block.separators;
  }
  return result;
}

int64_t end_of_line(const char* data, size_t size, int64_t n) {
  const char* p = data;
  const char* const end = data + size;
  for (; n > 0; --n) {
    const void* feed = p < end ? std::memchr(p, '\n', end - p) : nullptr;
    if (feed == nullptr) return -1;
    p = static_cast<const char*>(feed) + 1;
  }
  return p - data;
}

const char* terminated_text(const char* data, const Block& block, std::string* storage) {
  const char* text = data + block.begin;
  const size_t size = block.end - block.begin;
  if (size > 0 && text[size - 1] == '\n') return text;
  storage->reserve(size + 1);
  storage->assign(text, size);
  storage->push_back('\n');
  return storage->data();
}

void intern_labels(const char* data, const int64_t* offset, const int32_t* length, int64_t n_rows,
                   int64_t* code_out, std::vector<int64_t>* first_row_out) {
  std::unordered_map<std::string_view, int64_t> codes;
  for (int64_t row = 0; row < n_rows; ++row) {
    const std::string_view token(data + offset[row], static_cast<size_t>(length[row]));
    const auto [place, is_new] = codes.emplace(token, static_cast<int64_t>(codes.size()));
    if (is_new) first_row_out->push_back(row);
    code_out[row] = place->second;
  }
}

}  // namespace kfu::text

#include "kfu/text_reader.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "kfu/text_line.h"
#include "kfu/text_store.h"

namespace kfu::text {
namespace {

void close_row_gap(const RowArrays& rows, int64_t from, int64_t to, int64_t count) {
  move_range(rows.label, from, to, count);
  move_range(rows.label_offset, from, to, count);
  move_range(rows.label_length, from, to, count);
  move_range(rows.weight, from, to, count);
  move_range(rows.qid, from, to, count);
}

// Parses all blocks. A block behind one with an error is skipped: its errors come later in the
// file. An exception must not leave the parallel region, so running out of memory is a flag.
template <class Store>
std::vector<BlockResult> parse_blocks(const char* data, const Blocks& blocks,
                                      const SvmlightOptions& options, const RowArrays& rows,
                                      const Store& store) {
  const int64_t n_blocks = static_cast<int64_t>(blocks.blocks.size());
  std::vector<BlockResult> results(n_blocks);
  std::atomic<int64_t> first_bad{n_blocks};
  std::atomic<bool> out_of_memory{false};
#pragma omp parallel for schedule(dynamic, 1) num_threads(options.threads) if (n_blocks > 1)
  for (int64_t b = 0; b < n_blocks; ++b) {
    if (b > first_bad.load(std::memory_order_relaxed)) continue;
    try {
      const Block& block = blocks.blocks[b];
      std::string storage;
      const char* const text = terminated_text(data, block, &storage);
      results[b] = LineParser<Store>(text, block, options, rows, store).parse();
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
    if (results[b].error.fault == Fault::kNone) continue;
    int64_t known = first_bad.load();
    while (b < known && !first_bad.compare_exchange_weak(known, b)) {
    }
  }
  if (out_of_memory) throw std::bad_alloc();
  return results;
}

// Either every example has a qid or none has: the first example decides.
Error find_qid_error(const std::vector<BlockResult>& results) {
  int64_t with = kNever;
  int64_t without = kNever;
  for (const BlockResult& result : results) {
    with = std::min(with, result.first_with_qid);
    without = std::min(without, result.first_without_qid);
  }
  Error error;
  if (with == kNever || without == kNever) return error;
  error.fault = with < without ? Fault::kQidMissing : Fault::kQidUnexpected;
  error.line = std::max(with, without);
  error.previous = std::min(with, without);
  return error;
}

Summary summarise(const std::vector<BlockResult>& results) {
  Summary summary;
  summary.error = find_qid_error(results);
  for (const BlockResult& result : results) {
    summary.n_rows += result.rows;
    summary.n_entries += result.entries;
    summary.max_index = std::max(summary.max_index, result.max_index);
    summary.has_zero_index |= result.has_zero_index;
    summary.has_string_labels |= result.has_string_labels;
    summary.has_cost |= result.has_cost;
    summary.has_qid |= result.first_with_qid != kNever;
    summary.fits &= result.fits;
    const Error& error = result.error;
    if (error.fault != Fault::kNone &&
        (summary.error.fault == Fault::kNone || error.line <= summary.error.line)) {
      summary.error = error;
    }
    if (error.fault != Fault::kNone) break;
  }
  return summary;
}

template <class Store>
Summary parse_into(const char* data, const Blocks& blocks, const SvmlightOptions& options,
                   const RowArrays& rows, Store store) {
  const std::vector<BlockResult> results = parse_blocks(data, blocks, options, rows, store);
  const Summary summary = summarise(results);
  if (summary.error.fault != Fault::kNone || !summary.fits) return summary;
  Place to;
  for (size_t b = 0; b < results.size(); ++b) {
    const Block& block = blocks.blocks[b];
    const BlockResult& result = results[b];
    store.close_gap({block.first_line, block.first_entry}, to, result.rows, result.entries);
    close_row_gap(rows, block.first_line, to.row, result.rows);
    to.row += result.rows;
    to.entry += result.entries;
  }
  const bool zero_based = options.base == IndexBase::kZero ||
                          (options.base == IndexBase::kAuto && summary.has_zero_index);
  store.finish(summary.n_entries, zero_based, options.threads);
  return summary;
}

template <class Value, class Index>
CsrStore<Value, Index> store_of(const CsrArrays<Value, Index>& out) {
  return CsrStore<Value, Index>(out);
}

template <class Value>
DenseStore<Value> store_of(const DenseArray<Value>& out) {
  return DenseStore<Value>(out);
}

void estimate_line(const char* begin, const char* end, Estimate* estimate) {
  end = std::find(begin, end, '#');
  const char* colon = std::find(begin, end, ':');
  if (colon == end) return;
  if (colon - begin >= 2 && colon[-1] == '0' && is_blank(colon[-2])) {
    estimate->has_zero_index = true;
  }
  const char* last = end;
  while (*--last != ':') {
  }
  const char* digits = last;
  while (digits > begin && digit_of(digits[-1]) <= 9) --digits;
  if (digits == last || last - digits > kMaxIndexDigits) return;
  int64_t index = 0;
  for (; digits < last; ++digits) index = index * 10 + digit_of(*digits);
  estimate->max_index = std::max(estimate->max_index, index);
}

void estimate_range(const char* begin, const char* end, Estimate* estimate) {
  while (begin < end) {
    const char* const feed = std::find(begin, end, '\n');
    estimate_line(begin, feed, estimate);
    begin = feed == end ? end : feed + 1;
  }
}

}  // namespace

template <class Out>
Summary parse_svmlight(const char* data, const Blocks& blocks, const SvmlightOptions& options,
                       const RowArrays& rows, const Out& out) {
  return parse_into(data, blocks, options, rows, store_of(out));
}

Estimate estimate_indices(const char* data, size_t size, size_t sample_bytes) {
  Estimate estimate;
  if (size <= 2 * sample_bytes) {
    estimate_range(data, data + size, &estimate);
    return estimate;
  }
  // Both samples consist of whole lines; a line longer than a sample gives no estimate.
  const char* const head = data + sample_bytes;
  const char* const tail = data + size - sample_bytes;
  const char* end = head;
  while (end > data && end[-1] != '\n') --end;
  estimate_range(data, end, &estimate);
  const char* const start = std::find(tail, data + size, '\n');
  estimate_range(start, data + size, &estimate);
  return estimate;
}

template Summary parse_svmlight(const char*, const Blocks&, const SvmlightOptions&,
                                const RowArrays&, const CsrArrays<float, int32_t>&);
template Summary parse_svmlight(const char*, const Blocks&, const SvmlightOptions&,
                                const RowArrays&, const CsrArrays<float, int64_t>&);
template Summary parse_svmlight(const char*, const Blocks&, const SvmlightOptions&,
                                const RowArrays&, const CsrArrays<double, int32_t>&);
template Summary parse_svmlight(const char*, const Blocks&, const SvmlightOptions&,
                                const RowArrays&, const CsrArrays<double, int64_t>&);
template Summary parse_svmlight(const char*, const Blocks&, const SvmlightOptions&,
                                const RowArrays&, const DenseArray<float>&);
template Summary parse_svmlight(const char*, const Blocks&, const SvmlightOptions&,
                                const RowArrays&, const DenseArray<double>&);

}  // namespace kfu::text

// Parser of libsvm/SVMlight text: one example per line,
//
//   label [qid:N] [cost:W] [sid:S] index:value index:value ... [# comment]
//
// with strictly increasing indices, any label without blanks or colons, blanks between tokens,
// LF or CRLF line ends and an optional last line end. Blank and comment-only lines are skipped.
//
// The caller splits the buffer (split_blocks with ':'), allocates the arrays with the capacities
// that the counts give, and calls parse_svmlight once. Every block is parsed by one thread into
// its own range of the arrays; lines without an example and colons that are no feature leave gaps
// that are closed at the end, so the result does not depend on blocks or threads.

#ifndef KFU_TEXT_READER_H_
#define KFU_TEXT_READER_H_

#include <cstdint>

#include "kfu/text_blocks.h"

namespace kfu::text {

enum class IndexBase { kAuto, kZero, kOne };

struct SvmlightOptions {
  IndexBase base = IndexBase::kAuto;
  int64_t n_features = 0;  // indices beyond it are errors; 0: no limit
  int threads = 1;
};

// One entry per line of the buffer; the first n_rows are valid afterwards.
struct RowArrays {
  double* label = nullptr;
  int64_t* label_offset = nullptr;  // the label's token in the buffer
  int32_t* label_length = nullptr;
  double* weight = nullptr;  // 1 where the line has no cost:
  int64_t* qid = nullptr;    // 0 where the line has no qid:
};

// Entries in compressed rows. indptr has lines + 1 elements, the others one per colon.
template <class Value, class Index>
struct CsrArrays {
  int64_t* indptr = nullptr;
  Index* indices = nullptr;  // counted from 0
  Value* values = nullptr;
};

// Entries in full rows: lines x width values, zero before the call.
template <class Value>
struct DenseArray {
  Value* values = nullptr;
  int64_t width = 0;
  bool zero_based = false;  // what kAuto is assumed to turn out as
};

struct Summary {
  Error error;
  int64_t n_rows = 0;
  int64_t n_entries = 0;
  int64_t max_index = -1;  // largest index as written, -1 without features
  bool has_zero_index = false;
  bool has_string_labels = false;
  bool has_cost = false;
  bool has_qid = false;
  bool fits = true;  // false: repeat with wider indices or another width; the arrays are undefined
};

// Out: CsrArrays (float or double, int32_t or int64_t) or DenseArray (float or double).
template <class Out>
Summary parse_svmlight(const char* data, const Blocks& blocks, const SvmlightOptions& options,
                       const RowArrays& rows, const Out& out);

// Largest index and presence of an index 0 as a sample of lines from both ends of the buffer
// suggests: an estimate that decides how to parse, never a result.
struct Estimate {
  int64_t max_index = -1;
  bool has_zero_index = false;
};
Estimate estimate_indices(const char* data, size_t size, size_t sample_bytes);

}  // namespace kfu::text

#endif  // KFU_TEXT_READER_H_

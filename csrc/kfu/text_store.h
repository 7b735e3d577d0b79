// Where the line parser puts the entries of a row: compressed rows or full rows.
//
// A store is written by many blocks at once, each within its own range; close_gap moves the range
// of one block to its final place and is called in file order, so it never overwrites a range that
// has not been moved. Indices arrive as written and are stored as if counted from 1; shift corrects
// them when they turn out to be counted from 0.

#ifndef KFU_TEXT_STORE_H_
#define KFU_TEXT_STORE_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kfu/text_reader.h"

namespace kfu::text {

// Position of a block in the arrays: rows from row, entries from entry.
struct Place {
  int64_t row = 0;
  int64_t entry = 0;
};

template <class T>
void move_range(T* array, int64_t from, int64_t to, int64_t count) {
  if (from != to) std::copy(array + from, array + from + count, array + to);
}

template <class V, class Index>
class CsrStore {
 public:
  using Value = V;

  explicit CsrStore(const CsrArrays<Value, Index>& out) : out_(out) {}

  void begin_row(int64_t) {}
  void put(int64_t entry, int64_t index, Value value) {
    out_.indices[entry] = static_cast<Index>(index - 1);
    out_.values[entry] = value;
  }
  // indptr[row + 1] counts within the block until close_gap adds what lies before it.
  void end_row(int64_t row, int64_t entries) { out_.indptr[row + 1] = entries; }
  bool fits(int64_t max_index) const { return max_index <= std::numeric_limits<Index>::max(); }

  void close_gap(const Place& from, const Place& to, int64_t rows, int64_t entries) {
    int64_t* const source = out_.indptr + from.row + 1;
    int64_t* const target = out_.indptr + to.row + 1;
    for (int64_t i = 0; i < rows; ++i) target[i] = source[i] + to.entry;
    move_range(out_.indices, from.entry, to.entry, entries);
    move_range(out_.values, from.entry, to.entry, entries);
  }

  void finish(int64_t entries, bool zero_based, int threads) {
    out_.indptr[0] = 0;
    if (!zero_based) return;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < entries; ++i) out_.indices[i] += 1;
  }

 private:
  CsrArrays<Value, Index> out_;
};

template <class V>
class DenseStore {
 public:
  using Value = V;

  explicit DenseStore(const DenseArray<Value>& out) : out_(out), base_(out.zero_based ? 0 : 1) {}

  void begin_row(int64_t row) { row_ = out_.values + row * out_.width; }
  void put(int64_t, int64_t index, Value value) {
    const uint64_t column = static_cast<uint64_t>(index - base_);  // index 0 wraps and misses
    if (column < static_cast<uint64_t>(out_.width)) {
      row_[column] = value;
    } else {
      missed_ = true;
    }
  }
  void end_row(int64_t, int64_t) {}
  bool fits(int64_t) const { return !missed_; }

  void close_gap(const Place& from, const Place& to, int64_t rows, int64_t) {
    move_range(out_.values, from.row * out_.width, to.row * out_.width, rows * out_.width);
  }

  void finish(int64_t, bool, int) {}

 private:
  DenseArray<Value> out_;
  int64_t base_;
  Value* row_ = nullptr;
  bool missed_ = false;
};

}  // namespace kfu::text

#endif  // KFU_TEXT_STORE_H_

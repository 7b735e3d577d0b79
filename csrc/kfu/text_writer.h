// Formats rows as SVMlight text or as a delimited table. Numbers are written with the fewest
// digits that read back as the same floating-point number, integers without exponent.

#ifndef KFU_TEXT_WRITER_H_
#define KFU_TEXT_WRITER_H_

#include <cstdint>
#include <string>

namespace kfu::text {

// What stands before the features of a row. Labels are numbers (label), or texts: row i has
// label_text[label_start[label_code[i]] .. label_start[label_code[i] + 1]), or absent.
struct RowHeads {
  const double* label = nullptr;
  const char* label_text = nullptr;
  const int64_t* label_start = nullptr;
  const int64_t* label_code = nullptr;
  const int64_t* qid = nullptr;    // null: none
  const double* weight = nullptr;  // null: none
};

template <class Value, class Index>
struct CsrRows {
  const Index* indptr = nullptr;
  const Index* indices = nullptr;
  const Value* values = nullptr;
};

template <class Value>
struct DenseRows {
  const Value* values = nullptr;
  int64_t width = 0;
};

// How indices are written. The file says nothing of its base and width: an explicit zero in the
// first row makes them recoverable when no stored entry does.
struct IndexStyle {
  int64_t base = 1;
  int64_t first_zero = -1;  // column, counted from 0, that row 0 gets as a zero at its start
  int64_t last_zero = -1;   // the same at its end
};

// Append the lines of rows [begin, end) to *out. Zeros of dense rows are left out.
// Rows: CsrRows (float or double, int32_t or int64_t) or DenseRows (float or double).
template <class Rows>
void format_svmlight(const RowHeads& heads, const Rows& rows, int64_t begin, int64_t end,
                     const IndexStyle& style, std::string* out);

// Fields in the order label, qid, weight, features. Rows: DenseRows.
template <class Rows>
void format_table(const RowHeads& heads, const Rows& rows, int64_t begin, int64_t end,
                  char delimiter, std::string* out);

}  // namespace kfu::text

#endif  // KFU_TEXT_WRITER_H_

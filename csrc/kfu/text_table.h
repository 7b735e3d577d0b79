// Parser of delimited tables (CSV, TSV): one example per line, the same number of fields in each,
// every field a finite decimal number except the label's, which may be any text. A field may stand
// in double quotes. Blanks around fields, blank lines and lines that start with # are skipped.
//
// As in text_reader.h the caller splits the buffer and allocates; rows of a block go to their own
// range of the arrays and gaps are closed at the end.

#ifndef KFU_TEXT_TABLE_H_
#define KFU_TEXT_TABLE_H_

#include <cstdint>

#include "kfu/text_blocks.h"
#include "kfu/text_reader.h"

namespace kfu::text {

struct TableOptions {
  char delimiter = ',';
  int64_t n_fields = 0;      // fields of every line, the label's included
  int64_t label_field = -1;  // -1: no labels
  int64_t skip_lines = 0;    // lines before the data
  int threads = 1;
};

struct TableSummary {
  Error error;
  int64_t n_rows = 0;
  bool has_string_labels = false;
};

// values_out: lines x (n_fields minus the label's), row after row. Of rows, only the label arrays
// are used, and only with a label field; a quoted label's token lies between its quotes.
template <class Value>
TableSummary parse_table(const char* data, const Blocks& blocks, const TableOptions& options,
                         const RowArrays& rows, Value* values_out);

}  // namespace kfu::text

#endif  // KFU_TEXT_TABLE_H_

#include "kfu/text_table.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "kfu/text_number.h"
#include "kfu/text_store.h"

namespace kfu::text {
namespace {

// A field of a line: its content, and the byte behind it (a delimiter or the line feed).
struct Field {
  const char* begin;
  const char* end;
  const char* next;
};

template <class Value>
class TableParser {
 public:
  TableParser(const char* text, const Block& block, const TableOptions& options,
              const RowArrays& rows, Value* out)
      : text_(text),
        block_(block),
        options_(options),
        rows_(rows),
        width_(options.n_fields - (options.label_field >= 0 ? 1 : 0)),
        out_(out + block.first_line * width_) {}

  TableSummary parse() {
    const char* p = block_.begin == 0 ? skip_mark(text_) : text_;
    for (line_ = 0; line_ < block_.lines; ++line_) {
      const char* start = p;
      while (is_blank(*start)) ++start;
      const bool is_data = *start != '\n' && *start != '#' && line_number() > options_.skip_lines;
      if (is_data && !parse_row(&p)) break;
      while (*p != '\n') ++p;
      ++p;
    }
    return summary_;
  }

 private:
  bool parse_row(const char** cursor) {
    const char* const start = *cursor;
    const char* p = start;
    for (int64_t field = 0; field < options_.n_fields; ++field) {
      if (field > 0) {
        if (*p != options_.delimiter) return fail_count(start);
        ++p;
      }
      if (field == options_.label_field ? !parse_label(&p) : !parse_value(&p, field)) return false;
    }
    if (*p != '\n') return fail_count(start);
    ++summary_.n_rows;
    *cursor = p;
    return true;
  }

  // The hot path: a bare number between delimiters.
  bool parse_value(const char** cursor, int64_t field) {
    const char* p = skip_blanks(*cursor);
    if (parse_number(&p, out_) == NumberStatus::kOk) {
      p = skip_blanks(p);
      if (ends_field(*p)) {
        *cursor = p;
        ++out_;
        return true;
      }
    }
    return parse_other_value(cursor, field);
  }

  bool parse_other_value(const char** cursor, int64_t field) {
    Field cell;
    if (!find_field(*cursor, &cell)) return fail(Fault::kOpenQuote, *cursor, cell.end, field + 1);
    const char* p = cell.begin;
    const NumberStatus status = parse_number(&p, out_);
    if (status == NumberStatus::kOk && p == cell.end) {
      *cursor = cell.next;
      ++out_;
      return true;
    }
    for (const char* c = cell.begin; c < cell.end; ++c) {
      if (is_binary(*c)) return fail(Fault::kBinary, c, c + 1, field + 1);
    }
    Fault fault = Fault::kNotNumber;
    if (status == NumberStatus::kOverflow) fault = Fault::kOverflow;
    if (status == NumberStatus::kNotFinite) fault = Fault::kNotFinite;
    if (cell.begin == cell.end) fault = Fault::kMissingValue;
    return fail(fault, cell.begin, cell.end, field + 1);
  }

  bool parse_label(const char** cursor) {
    const int64_t row = block_.first_line + summary_.n_rows;
    Field cell;
    const int64_t column = options_.label_field + 1;
    if (!find_field(*cursor, &cell)) return fail(Fault::kOpenQuote, *cursor, cell.end, column);
    const int64_t length = cell.end - cell.begin;
    if (length == 0) return fail(Fault::kMissingLabel, cell.begin, cell.end, column);
    if (length > std::numeric_limits<int32_t>::max()) {
      return fail(Fault::kBinary, cell.begin, cell.begin + 1, column);
    }
    const char* p = cell.begin;
    const NumberStatus status = parse_number(&p, &rows_.label[row]);
    if (status == NumberStatus::kOverflow) {
      return fail(Fault::kLabelOverflow, cell.begin, cell.end, column);
    }
    const int64_t unsigned_length = length - (*p == '-' || *p == '+' ? 1 : 0);
    if (status == NumberStatus::kNotFinite && (unsigned_length == 3 || unsigned_length == 8)) {
      return fail(Fault::kLabelNotFinite, cell.begin, cell.end, column);
    }
    if (status != NumberStatus::kOk || p != cell.end) {
      for (const char* c = cell.begin; c < cell.end; ++c) {
        if (is_binary(*c)) return fail(Fault::kBinary, c, c + 1, column);
      }
      rows_.label[row] = 0;
      summary_.has_string_labels = true;
    }
    rows_.label_offset[row] = offset_of(cell.begin);
    rows_.label_length[row] = static_cast<int32_t>(length);
    *cursor = cell.next;
    return true;
  }

  // The field that starts at p; false when its quote is not closed or text follows the quote.
  bool find_field(const char* p, Field* field) const {
    p = skip_blanks(p);
    if (*p != '"') {
      field->begin = p;
      while (!ends_field(*p)) ++p;
      field->next = p;
      while (p > field->begin && is_blank(p[-1])) --p;
      field->end = p;
      return true;
    }
    field->begin = ++p;
    while (*p != '\n' && (*p != '"' || p[1] == '"')) p += *p == '"' ? 2 : 1;
    field->end = p;
    if (*p == '\n') return false;
    field->next = skip_blanks(p + 1);
    return ends_field(*field->next);
  }

  bool fail_count(const char* start) {
    int64_t n_fields = 1;
    Field cell;
    const char* p = start;
    while (find_field(p, &cell) && *cell.next != '\n') {
      p = cell.next + 1;
      ++n_fields;
    }
    summary_.error = {Fault::kFieldCount, line_number(),    offset_of(start), 0,
                      n_fields,           options_.n_fields};
    return false;
  }

  bool fail(Fault fault, const char* begin, const char* end, int64_t column) {
    summary_.error = {fault, line_number(), offset_of(begin), end - begin, column, 0};
    return false;
  }

  bool ends_field(char c) const { return c == options_.delimiter || c == '\n'; }
  const char* skip_blanks(const char* p) const {
    while (is_blank(*p) && *p != options_.delimiter) ++p;
    return p;
  }
  int64_t line_number() const { return block_.first_line + line_ + 1; }
  int64_t offset_of(const char* p) const {
    return static_cast<int64_t>(block_.begin) + (p - text_);
  }

  const char* text_;
  const Block& block_;
  const TableOptions& options_;
  const RowArrays& rows_;
  int64_t width_;
  Value* out_;
  TableSummary summary_;
  int64_t line_ = 0;
};

}  // namespace

template <class Value>
TableSummary parse_table(const char* data, const Blocks& blocks, const TableOptions& options,
                         const RowArrays& rows, Value* values_out) {
  const int64_t n_blocks = static_cast<int64_t>(blocks.blocks.size());
  std::vector<TableSummary> results(n_blocks);
  std::atomic<bool> out_of_memory{false};
#pragma omp parallel for schedule(dynamic, 1) num_threads(options.threads) if (n_blocks > 1)
  for (int64_t b = 0; b < n_blocks; ++b) {
    try {
      const Block& block = blocks.blocks[b];
      std::string storage;
      const char* const text = terminated_text(data, block, &storage);
      results[b] = TableParser<Value>(text, block, options, rows, values_out).parse();
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
  }
  if (out_of_memory) throw std::bad_alloc();
  TableSummary summary;
  const bool has_labels = options.label_field >= 0;
  const int64_t width = options.n_fields - (has_labels ? 1 : 0);
  for (int64_t b = 0; b < n_blocks; ++b) {
    const TableSummary& result = results[b];
    if (result.error.fault != Fault::kNone) {
      summary.error = result.error;
      return summary;
    }
    const int64_t from = blocks.blocks[b].first_line;
    const int64_t to = summary.n_rows;
    move_range(values_out, from * width, to * width, result.n_rows * width);
    if (has_labels) {
      move_range(rows.label, from, to, result.n_rows);
      move_range(rows.label_offset, from, to, result.n_rows);
      move_range(rows.label_length, from, to, result.n_rows);
    }
    summary.n_rows += result.n_rows;
    summary.has_string_labels |= result.has_string_labels;
  }
  return summary;
}

template TableSummary parse_table(const char*, const Blocks&, const TableOptions&, const RowArrays&,
                                  float*);
template TableSummary parse_table(const char*, const Blocks&, const TableOptions&, const RowArrays&,
                                  double*);

}  // namespace kfu::text

// The line parser of SVMlight text, over a store that takes the entries (text_store.h).
//
// Requires text that ends in a line feed: every scan stops there, so no loop checks for the end of
// the buffer. The hot path is LineParser::parse_features; all rarer cases leave it through
// parse_other_token.

#ifndef KFU_TEXT_LINE_H_
#define KFU_TEXT_LINE_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kfu/text_blocks.h"
#include "kfu/text_number.h"
#include "kfu/text_reader.h"

namespace kfu::text {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int kMaxIndexDigits = 18;

// What one block contains.
struct BlockResult {
  Error error;
  int64_t rows = 0;
  int64_t entries = 0;
  int64_t max_index = -1;
  int64_t first_with_qid = kNever;  // line numbers
  int64_t first_without_qid = kNever;
  bool has_zero_index = false;
  bool has_string_labels = false;
  bool has_cost = false;
  bool fits = true;
};

inline bool ends_token(char c) { return is_blank(c) || c == '\n' || c == '#'; }

template <class Store>
class LineParser {
 public:
  // text is the terminated text of block; rows and store receive row i of the block at position
  // block.first_line + i.
  LineParser(const char* text, const Block& block, const SvmlightOptions& options,
             const RowArrays& rows, Store store)
      : text_(text), block_(block), options_(options), rows_(rows), store_(store) {}

  BlockResult parse() {
    const char* p = block_.begin == 0 ? skip_mark(text_) : text_;
    for (line_ = 0; line_ < block_.lines; ++line_) {
      while (is_blank(*p)) ++p;
      if (*p != '\n' && *p != '#' && !parse_example(&p)) break;
      while (*p != '\n') ++p;
      ++p;
    }
    result_.fits = result_.fits && store_.fits(result_.max_index);
    return result_;
  }

 private:
  bool parse_example(const char** cursor) {
    const int64_t row = block_.first_line + result_.rows;
    if (!parse_label(cursor, row)) return false;
    rows_.weight[row] = 1;
    rows_.qid[row] = 0;
    has_qid_ = has_cost_ = false;
    store_.begin_row(row);
    if (!parse_features(cursor, row)) return false;
    store_.end_row(row, result_.entries);
    int64_t& first = has_qid_ ? result_.first_with_qid : result_.first_without_qid;
    first = std::min(first, line_number());
    result_.has_cost = result_.has_cost || has_cost_;
    ++result_.rows;
    return true;
  }

  bool parse_label(const char** cursor, int64_t row) {
    const char* const token = *cursor;
    const NumberStatus status = parse_number(cursor, &rows_.label[row]);
    rows_.label_offset[row] = offset_of(token);
    rows_.label_length[row] = static_cast<int32_t>(*cursor - token);
    if (status == NumberStatus::kOk && ends_token(**cursor)) return true;
    const char* end = token;
    for (; !ends_token(*end); ++end) {
      if (*end == ':') return fail(Fault::kMissingLabel, token);
      if (is_binary(*end)) return fail(Fault::kBinary, end, end + 1);
    }
    if (status == NumberStatus::kOverflow) return fail(Fault::kLabelOverflow, token);
    if (status == NumberStatus::kNotFinite && is_non_finite(token, end)) {
      return fail(Fault::kLabelNotFinite, token);
    }
    if (end - token > std::numeric_limits<int32_t>::max()) return fail(Fault::kBinary, token);
    rows_.label[row] = 0;
    rows_.label_length[row] = static_cast<int32_t>(end - token);
    result_.has_string_labels = true;
    *cursor = end;
    return true;
  }

  // "info" and "nancy" are labels, "inf", "-infinity" and "nan" are not.
  static bool is_non_finite(const char* token, const char* end) {
    if (*token == '+' || *token == '-') ++token;
    return end - token == 3 || end - token == 8;
  }

  bool parse_features(const char** cursor, int64_t row) {
    const char* p = *cursor;
    int64_t previous = options_.base == IndexBase::kOne ? 0 : -1;
    for (;;) {
      while (is_blank(*p)) ++p;
      const char* const token = p;
      uint64_t number = 0;
      unsigned digit;
      while ((digit = digit_of(*p)) <= 9) {
        number = number * 10 + digit;
        ++p;
      }
      if (*p != ':' || p == token || p - token > kMaxIndexDigits) {
        if (p == token && (*p == '\n' || *p == '#')) break;
        if (!parse_other_token(&p, token, row)) return false;
        continue;
      }
      const int64_t index = static_cast<int64_t>(number);
      if (index <= previous) return fail_order(token, index, previous);
      ++p;
      typename Store::Value value;
      const char* const text = p;
      const NumberStatus status = parse_number(&p, &value);
      if (status != NumberStatus::kOk || !ends_token(*p)) return fail_value(status, text, index);
      store_.put(block_.first_entry + result_.entries, index, value);
      ++result_.entries;
      previous = index;
      result_.has_zero_index |= index == 0;
    }
    if (options_.n_features > 0 && previous > last_index_allowed()) {
      return fail(Fault::kIndexBeyond, *cursor, *cursor, previous, options_.n_features);
    }
    result_.max_index = std::max(result_.max_index, previous);
    *cursor = p;
    return true;
  }

  // In automatic mode the base is only known at the end; the caller checks the last index again.
  int64_t last_index_allowed() const {
    return options_.base == IndexBase::kZero ? options_.n_features - 1 : options_.n_features;
  }

  // qid:, cost:, sid: or a mistake; p is behind the digits that the token starts with, if any.
  bool parse_other_token(const char** cursor, const char* token, int64_t row) {
    const char* colon = token;
    for (; *colon != ':'; ++colon) {
      if (is_binary(*colon)) return fail(Fault::kBinary, colon, colon + 1);
      if (ends_token(*colon)) return fail(Fault::kMissingColon, token);
    }
    const char* const value = colon + 1;
    if (matches(token, colon, "qid")) return parse_qid(cursor, value, row);
    if (matches(token, colon, "cost")) return parse_cost(cursor, value, row);
    if (matches(token, colon, "sid")) {
      *cursor = token_end(value);
      return true;
    }
    const char* const digits = token + (*token == '-' ? 1 : 0);
    const bool is_integer =
        digits < colon && std::all_of(digits, colon, [](char c) { return digit_of(c) <= 9; });
    if (!is_integer) return fail(Fault::kBadIndex, token, colon);
    if (*token == '-') return fail(Fault::kNegativeIndex, token, colon);
    return fail(Fault::kIndexTooLarge, token, colon);
  }

  static bool matches(const char* begin, const char* end, const char* word) {
    for (; begin < end && *begin == *word; ++begin) ++word;
    return begin == end && *word == '\0';
  }

  bool parse_qid(const char** cursor, const char* value, int64_t row) {
    if (has_qid_) return fail(Fault::kRepeatedToken, value - 4);
    const char* p = value;
    int64_t number = 0;
    for (; digit_of(*p) <= 9 && p - value < kMaxIndexDigits; ++p) {
      number = number * 10 + digit_of(*p);
    }
    if (p == value || !ends_token(*p)) return fail(Fault::kBadQid, value);
    rows_.qid[row] = number;
    has_qid_ = true;
    *cursor = p;
    return true;
  }

  bool parse_cost(const char** cursor, const char* value, int64_t row) {
    if (has_cost_) return fail(Fault::kRepeatedToken, value - 5);
    const char* p = value;
    double cost = 0;
    if (parse_number(&p, &cost) != NumberStatus::kOk || !ends_token(*p) || cost < 0) {
      return fail(Fault::kBadCost, value);
    }
    rows_.weight[row] = cost;
    has_cost_ = true;
    *cursor = p;
    return true;
  }

  bool fail_order(const char* token, int64_t index, int64_t previous) {
    const Fault fault = index == 0 && previous == 0 && options_.base == IndexBase::kOne
                            ? Fault::kZeroIndex
                            : Fault::kIndexOrder;
    return fail(fault, token, token_end(token), index, previous);
  }

  bool fail_value(NumberStatus status, const char* text, int64_t index) {
    for (const char* p = text; !ends_token(*p); ++p) {
      if (is_binary(*p)) return fail(Fault::kBinary, p, p + 1);
    }
    const char* const end = token_end(text);
    Fault fault = Fault::kNotNumber;
    if (status == NumberStatus::kOverflow) fault = Fault::kOverflow;
    if (status == NumberStatus::kNotFinite && is_non_finite(text, end)) fault = Fault::kNotFinite;
    return fail(fault, text, end, index);
  }

  bool fail(Fault fault, const char* token) { return fail(fault, token, token_end(token)); }

  bool fail(Fault fault, const char* begin, const char* end, int64_t index = 0,
            int64_t previous = 0) {
    result_.error = {fault, line_number(), offset_of(begin), end - begin, index, previous};
    return false;
  }

  static const char* token_end(const char* p) {
    while (!ends_token(*p)) ++p;
    return p;
  }

  int64_t line_number() const { return block_.first_line + line_ + 1; }
  int64_t offset_of(const char* p) const {
    return static_cast<int64_t>(block_.begin) + (p - text_);
  }

  const char* text_;
  const Block& block_;
  const SvmlightOptions& options_;
  const RowArrays& rows_;
  Store store_;
  BlockResult result_;
  int64_t line_ = 0;
  bool has_qid_ = false;
  bool has_cost_ = false;
};

}  // namespace kfu::text

#endif  // KFU_TEXT_LINE_H_

#include "kfu/text_writer.h"

#include <charconv>
#include <cmath>

namespace kfu::text {
namespace {

constexpr size_t kNumberBytes = 32;  // longest shortest form: -2.2250738585072014e-308

template <class Integer>
void append_integer(Integer value, std::string* out) {
  char text[kNumberBytes];
  out->append(text, std::to_chars(text, text + sizeof text, value).ptr - text);
}

template <class Real>
void append_real(Real value, std::string* out) {
  constexpr Real kIntegers = Real(1 << 24);  // every smaller integer is exact in both types
  if (std::abs(value) < kIntegers && value == std::trunc(value) &&
      !(value == 0 && std::signbit(value))) {
    append_integer(static_cast<int32_t>(value), out);
    return;
  }
  char text[kNumberBytes];
  out->append(text, std::to_chars(text, text + sizeof text, value).ptr - text);
}

void append_label(const RowHeads& heads, int64_t row, std::string* out) {
  if (heads.label != nullptr) {
    append_real(heads.label[row], out);
  } else {
    const int64_t* const start = heads.label_start + heads.label_code[row];
    out->append(heads.label_text + start[0], static_cast<size_t>(start[1] - start[0]));
  }
}

template <class Value>
void append_entry(int64_t index, Value value, std::string* out) {
  out->push_back(' ');
  append_integer(index, out);
  out->push_back(':');
  append_real(value, out);
}

template <class Value, class Index>
void append_entries(const CsrRows<Value, Index>& rows, int64_t row, int64_t base,
                    std::string* out) {
  for (Index k = rows.indptr[row]; k < rows.indptr[row + 1]; ++k) {
    append_entry(rows.indices[k] + base, rows.values[k], out);
  }
}

template <class Value>
void append_entries(const DenseRows<Value>& rows, int64_t row, int64_t base, std::string* out) {
  const Value* const values = rows.values + row * rows.width;
  for (int64_t j = 0; j < rows.width; ++j) {
    if (values[j] != 0 || std::signbit(values[j])) append_entry(j + base, values[j], out);
  }
}

}  // namespace

template <class Rows>
void format_svmlight(const RowHeads& heads, const Rows& rows, int64_t begin, int64_t end,
                     const IndexStyle& style, std::string* out) {
  for (int64_t row = begin; row < end; ++row) {
    append_label(heads, row, out);
    if (heads.qid != nullptr) {
      out->append(" qid:");
      append_integer(heads.qid[row], out);
    }
    if (heads.weight != nullptr) {
      out->append(" cost:");
      append_real(heads.weight[row], out);
    }
    if (row == 0 && style.first_zero >= 0) append_entry(style.first_zero + style.base, 0.0, out);
    append_entries(rows, row, style.base, out);
    if (row == 0 && style.last_zero >= 0) append_entry(style.last_zero + style.base, 0.0, out);
    out->push_back('\n');
  }
}

template <class Rows>
void format_table(const RowHeads& heads, const Rows& rows, int64_t begin, int64_t end,
                  char delimiter, std::string* out) {
  for (int64_t row = begin; row < end; ++row) {
    const size_t line_start = out->size();
    const auto separate = [&] {
      if (out->size() > line_start) out->push_back(delimiter);
    };
    if (heads.label != nullptr || heads.label_code != nullptr) append_label(heads, row, out);
    if (heads.qid != nullptr) {
      separate();
      append_integer(heads.qid[row], out);
    }
    if (heads.weight != nullptr) {
      separate();
      append_real(heads.weight[row], out);
    }
    for (int64_t j = 0; j < rows.width; ++j) {
      separate();
      append_real(rows.values[row * rows.width + j], out);
    }
    out->push_back('\n');
  }
}

template void format_svmlight(const RowHeads&, const CsrRows<float, int32_t>&, int64_t, int64_t,
                              const IndexStyle&, std::string*);
template void format_svmlight(const RowHeads&, const CsrRows<float, int64_t>&, int64_t, int64_t,
                              const IndexStyle&, std::string*);
template void format_svmlight(const RowHeads&, const CsrRows<double, int32_t>&, int64_t, int64_t,
                              const IndexStyle&, std::string*);
template void format_svmlight(const RowHeads&, const CsrRows<double, int64_t>&, int64_t, int64_t,
                              const IndexStyle&, std::string*);
template void format_svmlight(const RowHeads&, const DenseRows<float>&, int64_t, int64_t,
                              const IndexStyle&, std::string*);
template void format_svmlight(const RowHeads&, const DenseRows<double>&, int64_t, int64_t,
                              const IndexStyle&, std::string*);
template void format_table(const RowHeads&, const DenseRows<float>&, int64_t, int64_t, char,
                           std::string*);
template void format_table(const RowHeads&, const DenseRows<double>&, int64_t, int64_t, char,
                           std::string*);

}  // namespace kfu::text

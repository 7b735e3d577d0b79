// Stand-alone checks of the text readers and writers, meant to run under the address and
// undefined-behaviour sanitizers: texts of known content, mutated texts (no crash, and the same
// verdict for every block size and number of threads), and texts in buffers without a spare byte.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "kfu/text_blocks.h"
#include "kfu/text_number.h"
#include "kfu/text_reader.h"
#include "kfu/text_table.h"
#include "kfu/text_writer.h"

namespace {

using namespace kfu::text;

struct Rows {
  explicit Rows(int64_t n) : label(n), offset(n), length(n), weight(n), qid(n) {}
  RowArrays arrays() {
    return {label.data(), offset.data(), length.data(), weight.data(), qid.data()};
  }
  std::vector<double> label;
  std::vector<int64_t> offset;
  std::vector<int32_t> length;
  std::vector<double> weight;
  std::vector<int64_t> qid;
};

struct Parsed {
  Summary summary;
  std::vector<double> label;
  std::vector<int64_t> indptr;
  std::vector<int32_t> indices;
  std::vector<double> values;

  bool operator==(const Parsed& other) const {
    return summary.error.fault == other.summary.error.fault &&
           summary.error.line == other.summary.error.line &&
           summary.error.offset == other.summary.error.offset &&
           summary.n_rows == other.summary.n_rows && label == other.label &&
           indptr == other.indptr && indices == other.indices && values == other.values;
  }
};

// The text lives in a heap block of exactly its size, so that a read beyond it is noticed.
Parsed parse(const std::string& content, size_t block_bytes, int threads) {
  const std::unique_ptr<char[]> exact(new char[content.size()]);
  std::memcpy(exact.get(), content.data(), content.size());
  const Blocks blocks = split_blocks(exact.get(), content.size(), ':', block_bytes, threads);
  Rows rows(blocks.lines);
  Parsed parsed;
  parsed.indptr.resize(blocks.lines + 1);
  parsed.indices.resize(blocks.separators);
  parsed.values.resize(blocks.separators);
  SvmlightOptions options;
  options.threads = threads;
  const CsrArrays<double, int32_t> out{parsed.indptr.data(), parsed.indices.data(),
                                       parsed.values.data()};
  parsed.summary = parse_svmlight(exact.get(), blocks, options, rows.arrays(), out);
  const bool good = parsed.summary.error.fault == Fault::kNone && parsed.summary.fits;
  if (!good) parsed.summary.n_rows = parsed.summary.n_entries = 0;
  parsed.label.assign(rows.label.begin(), rows.label.begin() + parsed.summary.n_rows);
  parsed.indptr.resize(good ? parsed.summary.n_rows + 1 : 0);
  parsed.indices.resize(parsed.summary.n_entries);
  parsed.values.resize(parsed.summary.n_entries);
  estimate_indices(exact.get(), content.size(), block_bytes);

  const std::vector<double>::size_type cells = blocks.lines * 7;
  std::vector<double> dense(cells);
  const DenseArray<double> full{dense.data(), 7, false};
  const Summary other = parse_svmlight(exact.get(), blocks, options, rows.arrays(), full);
  CHECK(other.error.fault == parsed.summary.error.fault);
  CHECK(other.error.line == parsed.summary.error.line);
  return parsed;
}

TableSummary parse_csv(const std::string& content, int64_t n_fields, size_t block_bytes,
                       std::vector<double>* values) {
  const std::unique_ptr<char[]> exact(new char[content.size()]);
  std::memcpy(exact.get(), content.data(), content.size());
  const Blocks blocks = split_blocks(exact.get(), content.size(), ',', block_bytes, 2);
  Rows rows(blocks.lines);
  values->assign(blocks.lines * (n_fields - 1), 0.0);
  TableOptions options;
  options.n_fields = n_fields;
  options.label_field = 0;
  options.threads = 2;
  return parse_table(exact.get(), blocks, options, rows.arrays(), values->data());
}

// A fixed linear congruential sequence: the same texts on every machine.
class Sequence {
 public:
  uint32_t next(uint32_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33) % below;
  }

 private:
  uint64_t state_ = 20240229;
};

void test_numbers() {
  const char* const tokens[] = {"0",
                                "-0",
                                "1",
                                "123456789012345678901234567890",
                                "0.1",
                                "1e22",
                                "1e23",
                                "9007199254740993",
                                "5e-324",
                                "2.5e-324",
                                "1.7976931348623157e308",
                                "1e-999",
                                ".5",
                                "5.",
                                "0e99999999999999999999",
                                "3.14e2",
                                "-7.25E-3",
                                "0.000000000000000000000000000000001e33"};
  for (const char* token : tokens) {
    const std::string text = std::string(token) + "\n";
    const char* p = text.c_str();
    double value = -1;
    CHECK(parse_number(&p, &value) == NumberStatus::kOk);
    CHECK(*p == '\n');
    const double expected = std::strtod(token, nullptr);
    CHECK(value == expected && std::signbit(value) == std::signbit(expected));
    float single = -1;
    p = text.c_str();
    const float expected_single = std::strtof(token, nullptr);
    const NumberStatus status = parse_number(&p, &single);
    CHECK(std::isinf(expected_single) ? status == NumberStatus::kOverflow
                                      : single == expected_single);
  }
  const auto status_of = [](const std::string& text) {
    const char* p = text.c_str();
    double value;
    return parse_number(&p, &value);
  };
  CHECK(status_of("1e999\n") == NumberStatus::kOverflow);
  CHECK(status_of("-1e309\n") == NumberStatus::kOverflow);
  CHECK(status_of("nan\n") == NumberStatus::kNotFinite);
  CHECK(status_of("-Infinity\n") == NumberStatus::kNotFinite);
  CHECK(status_of("\n") == NumberStatus::kNotNumber);
  CHECK(status_of(".\n") == NumberStatus::kNotNumber);
  CHECK(status_of("1e\n") == NumberStatus::kNotNumber);
  CHECK(status_of("--1\n") == NumberStatus::kNotNumber);
}

void test_known_text() {
  const std::string text = "# head 1:1\n+1 qid:2 1:0.5 3:-2 # tail 9:9\r\n\n-1 qid:3 cost:2 2:7";
  for (size_t block_bytes : {size_t{1}, size_t{9}, size_t{1} << 20}) {
    for (int threads : {1, 2, 4}) {
      const Parsed parsed = parse(text, block_bytes, threads);
      CHECK(parsed.summary.error.fault == Fault::kNone);
      CHECK(parsed.summary.n_rows == 2);
      CHECK(parsed.summary.has_qid && parsed.summary.has_cost);
      CHECK((parsed.label == std::vector<double>{1, -1}));
      CHECK((parsed.indptr == std::vector<int64_t>{0, 2, 3}));
      CHECK((parsed.indices == std::vector<int32_t>{0, 2, 1}));
      CHECK((parsed.values == std::vector<double>{0.5, -2, 7}));
    }
  }
  CHECK(parse("", 1, 1).summary.n_rows == 0);
  CHECK(parse("1 0:2 5:3", 1, 1).indices == (std::vector<int32_t>{0, 5}));
  CHECK(!parse("1 2147483648:3", 1, 1).summary.fits);
  const Parsed bad = parse("1 1:1\n1 2:1 1:1\n1 x\n", 1, 2);
  CHECK(bad.summary.error.fault == Fault::kIndexOrder);
  CHECK(bad.summary.error.line == 2);
}

void test_mutated_text() {
  const std::string seed =
      "1 1:0.5 3:-2e-3 7:1e10\n-1 qid:3 2:1 # c\n+1.5 cost:0.5 1:3.25\r\n# line\n\nabc 4:1 5:nan\n";
  const std::string alphabet = std::string("0123456789:.-+eE# \t\r\n,\"qidcostnaf") + '\0' + "\xff";
  Sequence random;
  for (int round = 0; round < 1000; ++round) {
    std::string text = seed.substr(0, random.next(seed.size()) + 1);
    for (uint32_t edits = random.next(5); edits > 0; --edits) {
      const size_t at = random.next(text.size());
      const char c = alphabet[random.next(alphabet.size())];
      switch (random.next(3)) {
        case 0:
          text[at] = c;
          break;
        case 1:
          text.insert(at, 1 + random.next(25), c);
          break;
        default:
          if (text.size() > 1) text.erase(at, 1);
      }
    }
    const Parsed whole = parse(text, 1 << 20, 1);
    CHECK(parse(text, 1 + random.next(40), 2) == whole);
    std::vector<double> values;
    std::vector<double> other;
    const TableSummary table = parse_csv(text, 1 + random.next(4) + 1, 1 << 20, &values);
    CHECK(table.n_rows >= 0);
  }
}

void test_table() {
  std::vector<double> values;
  const std::string text = "# c\n\"a,\"\"b\", 1 ,\"2\"\r\n\n3,4e1, -5";
  for (size_t block_bytes : {size_t{1}, size_t{1} << 20}) {
    const TableSummary summary = parse_csv(text, 3, block_bytes, &values);
    CHECK(summary.error.fault == Fault::kNone);
    CHECK(summary.n_rows == 2 && summary.has_string_labels);
    CHECK(values[0] == 1 && values[1] == 2 && values[2] == 40 && values[3] == -5);
  }
  const auto fault_of = [&](const std::string& line) {
    const TableSummary summary = parse_csv("1,2,3\n" + line, 3, 1, &values);
    CHECK(summary.error.line == 2);
    return summary.error.fault;
  };
  CHECK(fault_of("1,2") == Fault::kFieldCount);
  CHECK(fault_of("1,2,3,4") == Fault::kFieldCount);
  CHECK(fault_of("1,,3") == Fault::kMissingValue);
  CHECK(fault_of("1,x,3") == Fault::kNotNumber);
  CHECK(fault_of("1,nan,3") == Fault::kNotFinite);
  CHECK(fault_of("1,\"2,3") == Fault::kOpenQuote);
  CHECK(fault_of(",2,3") == Fault::kMissingLabel);
}

void test_written_text() {
  const std::vector<double> values = {0.1, -0.0, 1e300, 5e-324, 123456, 1.0 / 3};
  const std::vector<double> labels = {1, -1.5};
  RowHeads heads;
  heads.label = labels.data();
  const DenseRows<double> rows{values.data(), 3};
  std::string text;
  format_svmlight(heads, rows, 0, 2, IndexStyle{}, &text);
  const Parsed parsed = parse(text, 1 << 20, 1);
  CHECK(parsed.label == labels);
  CHECK(parsed.values == values);
  std::string table;
  format_table(heads, rows, 0, 2, ',', &table);
  std::vector<double> back;
  CHECK(parse_csv(table, 4, 1, &back).error.fault == Fault::kNone);
  CHECK(back == values);
}

void test_lines() {
  const std::string text = "a\nbb\n\nc";
  CHECK(end_of_line(text.data(), text.size(), 1) == 2);
  CHECK(end_of_line(text.data(), text.size(), 3) == 6);
  CHECK(end_of_line(text.data(), text.size(), 4) == -1);
  const Blocks blocks = split_blocks(text.data(), text.size(), 'b', 1, 1);
  CHECK(blocks.lines == 4);
  CHECK(blocks.separators == 2);
  CHECK(blocks.blocks.size() == 4);
  const std::string longer(100000, ':');
  CHECK(split_blocks(longer.data(), longer.size(), ':', 10, 2).separators == 100000);
}

}  // namespace

int main() {
  test_numbers();
  test_lines();
  test_known_text();
  test_table();
  test_written_text();
  test_mutated_text();
  return kfu_test::report("text reader");
}

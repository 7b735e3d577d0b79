// A text buffer cut into line-aligned blocks that threads parse independently.
//
// One counting pass gives for every block the number of lines and of separator bytes (colons in
// SVMlight text, delimiters in tables). The line counts make the line numbers of errors exact; the
// separator counts bound the entries of a block from above, so that every thread writes straight
// into its own part of the final arrays and nothing is parsed twice or copied together.

#ifndef KFU_TEXT_BLOCKS_H_
#define KFU_TEXT_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kfu::text {

struct Block {
  size_t begin = 0;  // byte range [begin, end) of the buffer
  size_t end = 0;
  int64_t lines = 0;        // lines in the block (the last may lack its line feed)
  int64_t separators = 0;   // separator bytes in the block
  int64_t first_line = 0;   // lines before the block
  int64_t first_entry = 0;  // separators before the block
};

struct Blocks {
  std::vector<Block> blocks;
  int64_t lines = 0;
  int64_t separators = 0;
};

// What is wrong with a text. The readers report the first bad line in file order.
enum class Fault : int {
  kNone = 0,
  kNotNumber,     // a value that is no decimal number
  kNotFinite,     // a value that is nan or inf
  kOverflow,      // a value beyond the range of the type
  kMissingColon,  // a token without a colon
  kBadIndex,      // an index that is no integer
  kNegativeIndex,
  kZeroIndex,      // index 0 in 1-based data
  kIndexOrder,     // decreasing or repeated index
  kIndexTooLarge,  // more than 18 digits
  kIndexBeyond,    // larger than the number of features asked for
  kMissingLabel,   // the line starts with index:value
  kLabelNotFinite,
  kLabelOverflow,
  kBadQid,
  kBadCost,
  kRepeatedToken,  // a second qid: or cost: in the line
  kQidMissing,     // earlier lines have a qid
  kQidUnexpected,  // earlier lines have none
  kBinary,         // a byte that is no text
  kFieldCount,     // a table row with another number of fields
  kMissingValue,   // an empty field
  kOpenQuote,      // a quoted field that the line does not close
};

struct Error {
  Fault fault = Fault::kNone;
  int64_t line = 0;    // 1-based, in the buffer
  int64_t offset = 0;  // the token: bytes [offset, offset + length) of the buffer
  int64_t length = 0;
  int64_t index = 0;     // index of the feature, or number of the column (1-based)
  int64_t previous = 0;  // what it is compared with: the index before, the limit, the field count
};

// Cuts [data, data + size) behind line feeds into blocks of about block_bytes and counts in
// parallel. threads >= 1.
Blocks split_blocks(const char* data, size_t size, char separator, size_t block_bytes, int threads);

// Offset behind the n-th line feed of the buffer (n >= 1), or -1 when there are fewer.
int64_t end_of_line(const char* data, size_t size, int64_t n);

// The text of a block such that text[end - begin - 1] == '\n': a block that the file ends without
// a line feed is copied to storage and completed. An empty block has no text.
const char* terminated_text(const char* data, const Block& block, std::string* storage);

// Integer codes of label tokens: code[i] numbers the distinct tokens in order of first appearance,
// first_row_out[c] is the row in which the token c appears first.
void intern_labels(const char* data, const int64_t* offset, const int32_t* length, int64_t n_rows,
                   int64_t* code_out, std::vector<int64_t>* first_row_out);

// Behind the byte order mark of UTF-8, if the text starts with one. Requires a terminated text.
inline const char* skip_mark(const char* p) {
  return p[0] == '\xef' && p[1] == '\xbb' && p[2] == '\xbf' ? p + 3 : p;
}

inline bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

// Bytes that no text file has: control characters other than blanks and line ends, and DEL.
inline bool is_binary(char c) {
  const unsigned char u = static_cast<unsigned char>(c);
  return (u < 0x20 && !is_blank(c) && c != '\n') || u == 0x7f;
}

}  // namespace kfu::text

#endif  // KFU_TEXT_BLOCKS_H_

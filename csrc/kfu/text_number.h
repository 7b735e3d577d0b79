// Decimal text to binary floating point, correctly rounded.
//
// A decimal m * 10^e with an integer m that the type holds exactly and a power of ten that it
// holds exactly (10^22 for double, 10^10 for float) needs one multiplication or division, and IEEE
// arithmetic rounds that once: the result is the nearest floating-point number. That covers nearly
// every number in data files; the rest goes to std::from_chars, which is correctly rounded too.
//
// Grammar: [+-] (digits [. digits] | . digits) [(e|E) [+-] digits]. The functions read up to the
// first byte that cannot continue the number and never look further, so the text must end in a
// byte that is no part of any number (the readers guarantee a final line feed).

#ifndef KFU_TEXT_NUMBER_H_
#define KFU_TEXT_NUMBER_H_

#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

namespace kfu::text {

enum class NumberStatus { kOk, kNotNumber, kNotFinite, kOverflow };

inline unsigned digit_of(char c) { return static_cast<unsigned char>(c) - unsigned{'0'}; }

template <class Real>
struct ExactRange;

template <>
struct ExactRange<double> {
  static constexpr uint64_t kMantissa = uint64_t{1} << 53;
  static constexpr int kPower = 22;
};

template <>
struct ExactRange<float> {
  static constexpr uint64_t kMantissa = uint64_t{1} << 24;
  static constexpr int kPower = 10;
};

template <class Real>
inline Real power_of_ten(int e) {
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  return static_cast<Real>(kPowers[e]);  // exact for every e <= ExactRange<Real>::kPower
}

// Decimal exponent of the leading significant digit of unsigned text in the grammar above, plus
// the written exponent: positive means that an out-of-range number is too large, otherwise it is
// too small. Only called for numbers out of range.
inline bool exceeds_one(const char* text, int64_t written_exponent) {
  int64_t before = 0;  // integer digits from the first significant one
  int64_t after = 0;   // zeros directly after the point
  bool significant = false;
  for (; digit_of(*text) <= 9; ++text) {
    significant = significant || *text != '0';
    before += significant ? 1 : 0;
  }
  if (!significant && *text == '.') {
    for (++text; *text == '0'; ++text) ++after;
  }
  return before - after + written_exponent > 0;
}

// Everything the fast path does not settle; [first, last) is unsigned text in the grammar above.
template <class Real>
inline NumberStatus parse_long_number(const char* first, const char* last, int64_t exponent,
                                      Real* value) {
  Real parsed = 0;
  const std::from_chars_result result = std::from_chars(first, last, parsed);
  if (result.ec == std::errc::result_out_of_range || std::isinf(parsed)) {
    if (exceeds_one(first, exponent)) return NumberStatus::kOverflow;
    parsed = 0;  // nearer to zero than to the smallest subnormal number
  } else if (result.ec != std::errc() || result.ptr != last) {
    return NumberStatus::kNotNumber;
  }
  *value = parsed;
  return NumberStatus::kOk;
}

// Is the text at p (after its sign) nan, inf or infinity in any case?
inline bool names_non_finite(const char* p) {
  const auto lower = [](char c) { return static_cast<char>(c | 0x20); };
  if (lower(p[0]) == 'n') return lower(p[1]) == 'a' && lower(p[2]) == 'n';
  return lower(p[0]) == 'i' && lower(p[1]) == 'n' && lower(p[2]) == 'f';
}

// Reads the number at *cursor. On kOk the cursor is behind its last byte and *value is set; the
// caller checks what follows. Otherwise the cursor is unchanged.
template <class Real>
inline NumberStatus parse_number(const char** cursor, Real* value) {
  const char* p = *cursor;
  const bool negative = *p == '-';
  if (negative || *p == '+') ++p;
  const char* const first = p;
  uint64_t mantissa = 0;
  unsigned digit;
  while ((digit = digit_of(*p)) <= 9) {
    mantissa = mantissa * 10 + digit;
    ++p;
  }
  int64_t n_digits = p - first;
  int64_t fraction = 0;
  int64_t exponent = 0;
  if (*p == '.') {
    const char* const point = ++p;
    while ((digit = digit_of(*p)) <= 9) {
      mantissa = mantissa * 10 + digit;
      ++p;
    }
    fraction = p - point;
    n_digits += fraction;
  }
  if (n_digits == 0) {
    return names_non_finite(first) ? NumberStatus::kNotFinite : NumberStatus::kNotNumber;
  }
  if (*p == 'e' || *p == 'E') {
    ++p;
    const bool negative_exponent = *p == '-';
    if (negative_exponent || *p == '+') ++p;
    const char* const start = p;
    while ((digit = digit_of(*p)) <= 9) {
      if (exponent < int64_t{1} << 40) exponent = exponent * 10 + digit;
      ++p;
    }
    if (p == start) return NumberStatus::kNotNumber;
    if (negative_exponent) exponent = -exponent;
  }
  Real result;
  const int64_t power = exponent - fraction;
  constexpr int kPower = ExactRange<Real>::kPower;
  if (n_digits <= 19 && mantissa <= ExactRange<Real>::kMantissa && power >= -kPower &&
      power <= kPower) {
    result = static_cast<Real>(mantissa);
    if (power < 0) {
      result /= power_of_ten<Real>(static_cast<int>(-power));
    } else if (power > 0) {
      result *= power_of_ten<Real>(static_cast<int>(power));
    }
  } else if (n_digits <= 19 && mantissa == 0) {
    result = 0;
  } else {
    const NumberStatus status = parse_long_number(first, p, exponent, &result);
    if (status != NumberStatus::kOk) return status;
  }
  *value = negative ? -result : result;
  *cursor = p;
  return NumberStatus::kOk;
}

}  // namespace kfu::text

#endif  // KFU_TEXT_NUMBER_H_

// A test harness for the C++ core: CHECK reports file:line and counts, report() ends a program.
//
//   #include "check.h"
//   void rows_are_sorted() { CHECK(a < b); CHECK_NEAR(x, y, 1e-12); CHECK_THROWS(f(), Error); }
//   int main() { rows_are_sorted(); return kfu_test::report("rows"); }
//
// A failed check does not stop the program, so that one run shows every failure.
#ifndef KFU_TESTS_CHECK_H_
#define KFU_TESTS_CHECK_H_

#include <cmath>
#include <cstdio>

namespace kfu_test {

struct Counts {
  long checks = 0;
  long failures = 0;
};

// The counts of this program.
inline Counts& counts() {
  static Counts instance;
  return instance;
}

// Deterministic numbers in [0, 1).
struct Stream {
  unsigned long long state = 88172645463325252ull;
  double next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<double>(state >> 11) / 9007199254740992.0;
  }
};

inline bool check(bool holds, const char* expression, const char* file, int line) {
  ++counts().checks;
  if (!holds) {
    ++counts().failures;
    std::fprintf(stderr, "%s:%d: failed: %s\n", file, line, expression);
  }
  return holds;
}

// Holds when |a - b| <= tolerance; NaN is near nothing.
inline bool check_near(double a, double b, double tolerance, const char* expression,
                       const char* file, int line) {
  const bool holds = std::fabs(a - b) <= tolerance || a == b;
  if (!check(holds, expression, file, line)) {
    std::fprintf(stderr, "    %.17g and %.17g differ by %.3g, more than %.3g\n", a, b,
                 std::fabs(a - b), tolerance);
  }
  return holds;
}

// Prints one line and returns the exit code of main: 0 when there were checks and all held.
inline int report(const char* name) {
  const Counts& seen = counts();
  std::printf("%s: %ld checks, %ld failed\n", name, seen.checks, seen.failures);
  return seen.failures == 0 && seen.checks > 0 ? 0 : 1;
}

}  // namespace kfu_test

#define CHECK(expression) \
  ::kfu_test::check(static_cast<bool>(expression), #expression, __FILE__, __LINE__)

#define CHECK_NEAR(a, b, tolerance) \
  ::kfu_test::check_near((a), (b), (tolerance), #a " ~ " #b, __FILE__, __LINE__)

// Holds when evaluating `expression` throws `Exception` (and nothing else).
#define CHECK_THROWS(expression, Exception)                                          \
  do {                                                                               \
    bool threw = false;                                                              \
    try {                                                                            \
      (void)(expression);                                                            \
    } catch (const Exception&) {                                                     \
      threw = true;                                                                  \
    } catch (...) {                                                                  \
    }                                                                                \
    ::kfu_test::check(threw, #expression " throws " #Exception, __FILE__, __LINE__); \
  } while (false)

#endif  // KFU_TESTS_CHECK_H_

// The loops of the outer loop against obvious ones, for every instruction set and length of tail.
#include "kfu/outer_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "check.h"
#include "instruction_sets.h"

namespace {

using namespace kfu;
using kfu_test::instruction_sets;
using kfu_test::Stream;

constexpr double kInf = std::numeric_limits<double>::infinity();

template <class T>
void check_part(const OuterLoops<T>& loops, Index m, double share, Stream& random) {
  std::vector<T> values(static_cast<std::size_t>(m)), staying, others;
  std::vector<std::uint16_t> stays(static_cast<std::size_t>(m / 16 + 1), 0);
  for (Index k = 0; k < m; ++k) {
    values[k] = static_cast<T>(random.next());
    const bool is_staying = random.next() < share;
    if (is_staying) stays[k / 16] |= static_cast<std::uint16_t>(1u << (k % 16));
    (is_staying ? staying : others).push_back(values[k]);
  }
  std::vector<T> leaving(static_cast<std::size_t>(m + 16));
  const Index count = loops.part(values.data(), stays.data(), m, leaving.data());
  CHECK(count == static_cast<Index>(staying.size()));
  CHECK(std::equal(staying.begin(), staying.end(), values.begin()));
  CHECK(std::equal(others.begin(), others.end(), leaving.begin()));
}

void check_satisfactions(const OuterLoops<float>& loops, Index m, Stream& random) {
  std::vector<double> F, up, low, found(static_cast<std::size_t>(m));
  for (Index k = 0; k < m; ++k) {
    F.push_back(4.0 * random.next() - 2.0);
    const double which = random.next();  // at a bound, in between, or a box of one point
    up.push_back(which < 0.3 || which > 0.9 ? kInf : 0.0);
    low.push_back(which > 0.6 ? -kInf : 0.0);
  }
  const double theta = 0.25;
  const Violations violations =
      loops.satisfactions(F.data(), up.data(), low.data(), theta, m, found.data());
  double sum = 0.0;
  Index count = 0;
  for (Index k = 0; k < m; ++k) {
    const double expected = std::min(F[k] - theta + up[k], theta - F[k] - low[k]);
    CHECK(found[k] == expected);
    sum += std::max(0.0, -expected);
    count += expected < 0.0;
  }
  CHECK(violations.count == count);
  CHECK(std::fabs(violations.sum - sum) <= 1e-12 * (1.0 + sum));

  std::vector<int> rounds, expected;
  for (Index k = 0; k < m; ++k) rounds.push_back(static_cast<int>(4.0 * random.next()));
  Index settled = 0;
  for (Index k = 0; k < m; ++k) {
    expected.push_back(found[k] > 0.5 ? rounds[k] + 1 : 0);
    settled += expected[k] >= 2;
  }
  CHECK(loops.count_settled(found.data(), 0.5, rounds.data(), 2, m) == settled);
  CHECK(rounds == expected);
}

// Every entry of the tile that is asked for, and no other.
template <class T>
void check_mirror(const OuterLoops<T>& loops, Stream& random) {
  constexpr Index m = 64, ld = 80;
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<T> block(static_cast<std::size_t>(m * ld));
    for (T& value : block) value = static_cast<T>(random.next());
    const std::vector<T> before = block;
    const Index row = 16 * (turn % 4), column = 16 * ((turn / 4 + turn) % 4);
    const bool takes_all = turn % 5 == 0 && row != column;
    const unsigned rows = takes_all ? 0xffff : static_cast<unsigned>(65536.0 * random.next());
    unsigned columns = takes_all ? 0xffff : static_cast<unsigned>(65536.0 * random.next());
    if (row == column) columns &= ~rows;
    loops.mirror(block.data(), ld, row, rows, column, columns);
    for (Index r = 0; r < m; ++r)
      for (Index c = 0; c < ld; ++c) {
        const bool is_asked = r >= row && r < row + 16 && c >= column && c < column + 16 &&
                              (rows >> (r - row) & 1) != 0 && (columns >> (c - column) & 1) != 0;
        CHECK(block[r * ld + c] == (is_asked ? before[c * ld + r] : before[r * ld + c]));
      }
  }
}

}  // namespace

int main() {
  Stream random;
  for (const Simd simd : instruction_sets()) {
    const OuterLoops<float>& single = outer_loops<float>(simd);
    const OuterLoops<double>& full = outer_loops<double>(simd);
    for (Index m = 0; m < 70; ++m) {
      for (const double share : {0.0, 0.1, 0.5, 1.0}) {
        check_part(single, m, share, random);
        check_part(full, m, share, random);
      }
      check_satisfactions(single, m, random);
    }
    check_mirror(single, random);
    check_mirror(full, random);
  }
  return kfu_test::report("outer_loops");
}

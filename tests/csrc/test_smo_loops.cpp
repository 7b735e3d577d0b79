// The vector loops against obvious ones, for every instruction set and every length of tail.
#include "kfu/smo_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "check.h"
#include "kfu/panel.h"
#include "kfu/row_sums.h"

namespace {

using namespace kfu;
using kfu_test::Stream;

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<Simd> instruction_sets() {
  std::vector<Simd> found;
  for (const Simd simd : {Simd::baseline, Simd::avx2, Simd::avx512})
    if (has_simd(simd)) found.push_back(simd);
  return found;
}

template <class T>
void check_part(const SmoLoops<T, double>& loops, Index m, double share, Stream& random) {
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

void check_satisfactions(const SmoLoops<float, double>& loops, Index m, Stream& random) {
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

// Any number of rows and columns, threads or none: the same bits.
template <class T>
void check_add_rows(Simd simd, Index n_rows, Index m, Stream& random) {
  const SmoLoops<T, double>& loops = smo_loops<T, double>(simd);
  std::vector<std::vector<T>> rows(static_cast<std::size_t>(n_rows));
  std::vector<const T*> pointers;
  std::vector<KeptRow<T>> kept;
  std::vector<double> delta, start(static_cast<std::size_t>(m));
  for (std::vector<T>& row : rows) {
    for (Index k = 0; k < m; ++k) row.push_back(static_cast<T>(random.next()));
    pointers.push_back(row.data());
    kept.push_back({row.data(), nullptr});
    delta.push_back(2.0 * random.next() - 1.0);
  }
  for (double& value : start) value = random.next();
  std::vector<double> F = start;
  loops.add_rows(F.data(), pointers.data(), delta.data(), n_rows, m);
  for (Index k = 0; k < m; ++k) {
    double expected = start[k];
    for (Index r = 0; r < n_rows; ++r) expected += delta[r] * static_cast<double>(rows[r][k]);
    CHECK(std::fabs(F[k] - expected) <= 1e-13 * static_cast<double>(n_rows + 1));
  }
  for (const int threads : {1, 2, 3}) {
    std::vector<double> shared = start;
    add_rows_in_shares(simd, shared.data(), kept, delta, 0, m, threads);
    CHECK(shared == F);
  }
}

}  // namespace

int main() {
  Stream random;
  for (const Simd simd : instruction_sets()) {
    const auto& mixed = smo_loops<float, double>(simd);
    const auto& full = smo_loops<double, double>(simd);
    for (Index m = 0; m < 70; ++m) {
      for (const double share : {0.0, 0.1, 0.5, 1.0}) {
        check_part(mixed, m, share, random);
        check_part(full, m, share, random);
      }
      check_satisfactions(mixed, m, random);
    }
    for (const Index n_rows : {0, 1, 3, 4, 11, 12, 13, 29})
      for (const Index m : {1, 15, 33, 500}) {
        check_add_rows<float>(simd, n_rows, m, random);
        check_add_rows<double>(simd, n_rows, m, random);
      }
    check_add_rows<float>(simd, 25, 20011, random);
  }
  return kfu_test::report("smo_loops");
}

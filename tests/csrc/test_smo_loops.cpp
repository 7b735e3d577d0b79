// The vector loops against obvious ones, for every instruction set and every length of tail.
#include "kfu/smo_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "check.h"
#include "instruction_sets.h"
#include "kfu/row_sums.h"

namespace {

using namespace kfu;
using kfu_test::instruction_sets;
using kfu_test::Stream;

constexpr double kInf = std::numeric_limits<double>::infinity();

// Few different values, so that ties abound: the first of equals is found, or nothing.
template <class T, class G>
void check_scan(const SmoLoops<T, G>& loops, Index m, double closed, Stream& random) {
  const std::size_t size = static_cast<std::size_t>(m);
  std::vector<G> F(size), up(size, G(0)), low(size, G(0));
  std::vector<T> row_i(size), row_j(size);
  for (Index k = 0; k < m; ++k) {
    F[k] = static_cast<G>(std::floor(6.0 * random.next()) - 3.0);
    if (random.next() < closed) up[k] = static_cast<G>(kInf);
    if (random.next() < closed) low[k] = static_cast<G>(-kInf);
    row_i[k] = static_cast<T>(std::floor(3.0 * random.next()));
    row_j[k] = static_cast<T>(std::floor(3.0 * random.next()));
  }
  const auto check_ends = [&](const Extremes& found) {
    double least = kInf, most = -kInf;
    Index first = -1, last = -1;
    for (Index k = 0; k < m; ++k) {
      const double f = static_cast<double>(F[k] + up[k]), g = static_cast<double>(F[k] + low[k]);
      if (f < least) least = f, first = k;
      if (g > most) most = g, last = k;
    }
    CHECK(found.up == first && found.low == last);
    CHECK(found.up_value == least && found.low_value == most);
  };
  check_ends(loops.scan(F.data(), up.data(), low.data(), m));
  std::vector<G> moved = F;
  const Extremes found =
      loops.step_and_scan(moved.data(), row_i.data(), row_j.data(), 0.5, up.data(), low.data(), m);
  for (Index k = 0; k < m; ++k) F[k] += static_cast<G>(0.5 * (row_i[k] - row_j[k]));
  CHECK(moved == F);
  check_ends(found);
}

template <class T, class G>
void check_second(const SmoLoops<T, G>& loops, Index m, Stream& random) {
  const std::size_t size = static_cast<std::size_t>(m);
  std::vector<G> F(size), low(size, G(0));
  std::vector<T> row(size), diagonal(size);
  for (Index k = 0; k < m; ++k) {  // few small numbers: products are exact, and many are equal
    F[k] = static_cast<G>(std::exp2(std::floor(3.0 * random.next())));
    if (random.next() < 0.3) low[k] = static_cast<G>(-kInf);
    row[k] = T(0.5);
    diagonal[k] = random.next() < 0.5 ? T(1) : T(2);
  }
  const T own = 1, floor = T(1.5);
  for (const G origin : {G(1), G(2), G(8)}) {
    double top = 0.0;
    Index expected = -1;
    for (Index k = 0; k < m; ++k) {
      const double gap = std::max(0.0, static_cast<double>(F[k] + low[k] - origin));
      const double curvature = std::max(own + diagonal[k] - 2 * row[k], floor);
      if (gap * gap / curvature > top) top = gap * gap / curvature, expected = k;
    }
    const Index found = loops.select_second(F.data(), row.data(), diagonal.data(), origin, own,
                                            low.data(), floor, m);
    CHECK(found == expected);
  }
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
    for (const Index m : {0, 32, 64, 96, 1024})
      for (const double closed : {0.0, 0.5, 0.95, 1.0}) {
        check_scan(smo_loops<float, float>(simd), m, closed, random);
        check_scan(mixed, m, closed, random);
        check_second(smo_loops<float, float>(simd), m, random);
        check_second(mixed, m, random);
        check_scan(smo_loops<double, double>(simd), m, closed, random);
        check_second(smo_loops<double, double>(simd), m, random);
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

// Rows of two bytes a value: rounding, and the loops over them against obvious ones, for every
// instruction set.
#include "kfu/coarse_rows.h"

#include <cmath>
#include <vector>

#include "check.h"
#include "kfu/panel.h"
#include "kfu/row_sums.h"
#include "kfu/smo_loops_isa.h"

namespace {

using namespace kfu;
using kfu_test::Stream;

using Row = std::vector<std::uint16_t>;

Row random_row(Index m, Stream& random) {
  Row row;
  for (Index c = 0; c < m; ++c) row.push_back(coarse_units(static_cast<float>(random.next())));
  return row;
}

void check_rounding(Stream& random) {
  CHECK(coarse_units(0.0f) == 0 && coarse_units(1.0f) == 65535);
  CHECK(coarse_units(1.000003f) == 65535);  // what weights may add up to
  for (int k = 0; k < 2000; ++k) {
    const float value = static_cast<float>(std::pow(random.next(), 3.0));
    CHECK_NEAR(coarse_units(value) * kCoarseUnit, static_cast<double>(value), kCoarseError);
  }
}

// Any part of the columns, threads or none: the same bits.
void check_add_rows(Simd simd, Index n_rows, Index m, Stream& random) {
  std::vector<Row> rows;
  std::vector<KeptRow<float>> kept;
  std::vector<const std::uint16_t*> pointers;
  std::vector<double> delta, start;
  for (Index r = 0; r < n_rows; ++r) rows.push_back(random_row(m, random));
  for (Row& row : rows) {
    kept.push_back({nullptr, nullptr, row.data()});
    pointers.push_back(row.data());
    delta.push_back(2.0 * random.next() - 1.0);
  }
  for (Index c = 0; c < m; ++c) start.push_back(random.next());
  const Index first = m / 5, last = m - m / 7;
  std::vector<double> F = start;
  coarse_loops(simd).add_rows(F.data(), pointers.data(), delta.data(), n_rows, first, last);
  for (Index c = 0; c < m; ++c) {
    double expected = start[c];
    for (Index r = 0; r < n_rows && c >= first && c < last; ++r)
      expected += delta[r] * static_cast<double>(pointers[r][c]) * kCoarseUnit;
    CHECK_NEAR(F[c], expected, 1e-13 * static_cast<double>(n_rows + 1));
  }
  for (const int threads : {1, 2, 3}) {
    std::vector<double> shared = start;
    add_rows_in_shares(simd, shared.data(), kept, delta, first, last, threads);
    CHECK(shared == F);
  }
}

void check_part(const CoarseLoops& loops, Index m, double share, Stream& random) {
  Row row = random_row(m + 32, random);
  const Row whole = row;
  std::vector<std::uint16_t> staying, leaving, others(static_cast<std::size_t>(m + 32));
  std::vector<std::uint16_t> stays(static_cast<std::size_t>(m / 16 + 1), 0);
  for (Index c = 0; c < m; ++c) {
    const bool is_staying = random.next() < share;
    if (is_staying) stays[c / 16] |= static_cast<std::uint16_t>(1u << (c % 16));
    (is_staying ? staying : leaving).push_back(row[c]);
  }
  const Index count = loops.part(row.data(), stays.data(), m, others.data());
  CHECK(count == static_cast<Index>(staying.size()));
  for (std::size_t c = 0; c < staying.size(); ++c) CHECK(row[c] == staying[c]);
  for (std::size_t c = 0; c < leaving.size(); ++c) CHECK(others[c] == leaving[c]);
  for (Index c = m; c < m + 32; ++c) CHECK(row[c] == whole[c]);  // another row's
}

void check_part(const CoarseLoops& loops, Stream& random) {
  for (const Index m : {0, 1, 15, 16, 31, 32, 63, 64, 65, 129, 1000})
    for (const double share : {0.0, 0.1, 0.5, 1.0}) check_part(loops, m, share, random);
}

}  // namespace

int main() {
  Stream random;
  check_rounding(random);
  for (const Simd simd : {Simd::baseline, Simd::avx2, Simd::avx512}) {
    if (!has_simd(simd)) continue;
    for (const Index n_rows : {0, 1, 3, 4, 11, 12, 13, 29})
      for (const Index m : {1, 15, 64, 65, 500}) check_add_rows(simd, n_rows, m, random);
    check_add_rows(simd, 25, 20011, random);
    check_add_rows(simd, 13, 40000, random);
    check_part(coarse_loops(simd), random);
  }
#if defined(__x86_64__)
  if (has_simd(Simd::avx512)) check_part(smo_loops_avx512(false).coarse, random);
#endif
  return kfu_test::report("coarse_rows");
}

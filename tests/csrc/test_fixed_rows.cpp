// Rows in fixed point: rounding, and the loops over them against obvious ones, for every
// instruction set.
#include "kfu/fixed_rows.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "check.h"
#include "kfu/panel.h"
#include "kfu/row_sums.h"
#include "kfu/smo_loops_isa.h"

namespace {

using namespace kfu;
using kfu_test::Stream;

using Row = std::vector<FixedBlock>;

Row random_row(Index m, Stream& random) {
  Row row(static_cast<std::size_t>(fixed_blocks(m)));
  for (Index c = 0; c < m; ++c) set_fixed_value(row.data(), c, static_cast<float>(random.next()));
  return row;
}

double units_of(const FixedBlock* row, Index column) {
  const FixedBlock& block = row[column / kFixedColumns];
  return 256.0 * block.high[column % kFixedColumns] + block.low[column % kFixedColumns];
}

void check_rounding(Stream& random) {
  FixedBlock block;
  for (const float value : {0.0f, 1.0f, 0.5f, 0.25f, static_cast<float>(kFixedUnit)}) {
    set_fixed_value(&block, 63, value);
    CHECK(fixed_value(&block, 63) == value);
  }
  set_fixed_value(&block, 0, 1.000003f);  // what weights may add up to
  CHECK_NEAR(fixed_value(&block, 0), 1.000003, 2e-7);
  for (int k = 0; k < 2000; ++k) {
    const float value = static_cast<float>(std::pow(random.next(), 3.0));
    set_fixed_value(&block, k % 64, value);
    const double units = units_of(&block, k % 64);
    CHECK_NEAR(units * kFixedUnit, static_cast<double>(value), kFixedError);
    CHECK_NEAR(fixed_value(&block, k % 64), units * kFixedUnit, 1e-7 * value);
  }
}

// Any part of the columns, threads or none: the same bits.
void check_add_rows(Simd simd, Index n_rows, Index m, Stream& random) {
  std::vector<Row> rows;
  std::vector<KeptRow<float>> kept;
  std::vector<const FixedBlock*> pointers;
  std::vector<double> delta, start;
  for (Index r = 0; r < n_rows; ++r) rows.push_back(random_row(m, random));
  for (Row& row : rows) {
    kept.push_back({nullptr, row.data()});
    pointers.push_back(row.data());
    delta.push_back(2.0 * random.next() - 1.0);
  }
  for (Index c = 0; c < m; ++c) start.push_back(random.next());
  const Index first = m / 5, last = m - m / 7;
  std::vector<double> F = start;
  fixed_loops(simd).add_rows(F.data(), pointers.data(), delta.data(), n_rows, first, last);
  for (Index c = 0; c < m; ++c) {
    double expected = start[c];
    for (Index r = 0; r < n_rows && c >= first && c < last; ++r)
      expected += delta[r] * units_of(pointers[r], c) * kFixedUnit;
    CHECK_NEAR(F[c], expected, 1e-13 * static_cast<double>(n_rows + 1));
  }
  for (const int threads : {1, 2, 3}) {
    std::vector<double> shared = start;
    add_rows_in_shares(simd, shared.data(), kept, delta, first, last, threads);
    CHECK(shared == F);
  }
}

void check_part(const FixedLoops& loops, Index m, double share, bool keeps_all, Stream& random) {
  Row row = random_row(m, random);
  std::vector<float> staying, leaving;
  std::vector<std::uint16_t> stays(static_cast<std::size_t>(m / 16 + 1), 0);
  for (Index c = 0; c < m; ++c) {
    const bool is_staying = random.next() < share;
    if (is_staying) stays[c / 16] |= static_cast<std::uint16_t>(1u << (c % 16));
    (is_staying ? staying : leaving).push_back(fixed_value(row.data(), c));
  }
  FixedScratch scratch;
  scratch.resize(m);
  const Index count = loops.part(row.data(), stays.data(), m, keeps_all, scratch.parts());
  CHECK(count == static_cast<Index>(staying.size()));
  if (keeps_all) staying.insert(staying.end(), leaving.begin(), leaving.end());
  for (std::size_t c = 0; c < staying.size(); ++c)
    CHECK(fixed_value(row.data(), static_cast<Index>(c)) == staying[c]);
}

void check_part(const FixedLoops& loops, Stream& random) {
  for (const Index m : {0, 1, 15, 16, 63, 64, 65, 129, 1000})
    for (const double share : {0.0, 0.1, 0.5, 1.0})
      for (const bool keeps_all : {false, true}) check_part(loops, m, share, keeps_all, random);
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
    check_part(fixed_loops(simd), random);
  }
#if defined(__x86_64__)
  if (has_simd(Simd::avx512)) check_part(smo_loops_avx512(false).fixed, random);
#endif
  return kfu_test::report("fixed_rows");
}

// The Gram of features: editing column sets, splitting calls, keeping rows, and every layout
// against a plain double loop.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "check.h"
#include "instruction_sets.h"
#include "kfu/gram.h"
#include "kfu/panel.h"

namespace {

using namespace kfu;

constexpr double gamma_value = 0.21;

/// A reproducible sequence in [0, 1).
class Sequence {
 public:
  double next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state_ >> 40) / static_cast<double>(1 << 24);
  }
  Index below(Index n) { return static_cast<Index>(next() * static_cast<double>(n)); }

 private:
  std::uint64_t state_ = 42;
};

/// Points with about `density` of their entries set, dense and as CSR.
struct Data {
  Data(Index n, Index d, double density, Sequence& sequence) : n(n), d(d) {
    values.assign(static_cast<std::size_t>(n * d), 0.0);
    indptr.push_back(0);
    for (Index i = 0; i < n; ++i) {
      for (Index k = 0; k < d; ++k) {
        if (sequence.next() >= density) continue;
        const double value = 2 * sequence.next() - 1;
        values[static_cast<std::size_t>(i * d + k)] = value;
        entries.push_back(value);
        indices.push_back(static_cast<std::int32_t>(k));
      }
      indptr.push_back(static_cast<Index>(entries.size()));
    }
  }

  DataView view(bool is_csr) const {
    DataView view;
    view.n = n;
    view.d = d;
    view.is_csr = is_csr;
    view.ld = d;
    view.values = is_csr ? static_cast<const void*>(entries.data()) : values.data();
    view.indptr = indptr.data();
    view.indices = indices.data();
    return view;
  }

  double rbf(Index i, Index j) const {
    double s = 0;
    for (Index k = 0; k < d; ++k) {
      const double t =
          values[static_cast<std::size_t>(i * d + k)] - values[static_cast<std::size_t>(j * d + k)];
      s += t * t;
    }
    return std::exp(-gamma_value * s);
  }

  Index n, d;
  std::vector<double> values, entries;
  std::vector<Index> indptr;
  std::vector<std::int32_t> indices;
};

Kernel single(const char* name) {
  Leaf leaf;
  leaf.kind = kernel_kind(name);
  leaf.gamma = gamma_value;
  Kernel kernel;
  kernel.terms.resize(1);
  kernel.terms[0].leaves.push_back(leaf);
  return kernel;
}

std::vector<Index> range(Index n) {
  std::vector<Index> all(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) all[static_cast<std::size_t>(i)] = i;
  return all;
}

template <class T>
std::vector<T> full_matrix(const Gram<T>& gram, const ColumnSet& columns) {
  const Index n = gram.size(), m = columns.size();
  std::vector<T> out(static_cast<std::size_t>(n * m));
  std::vector<T*> rows;
  for (Index i = 0; i < n; ++i) rows.push_back(out.data() + i * m);
  gram.rows(range(n).data(), n, columns, 0, m, rows.data());
  return out;
}

/// Random edits of a set leave it equal to a fresh one with the same points.
template <class T>
void edits(const Gram<T>& gram, Index capacity, const std::vector<T>& K, Sequence& sequence) {
  const Index n = gram.size();
  auto columns = gram.make_columns(capacity);
  std::vector<Index> slots;
  for (int round = 0; round < 12; ++round) {
    const Index first = sequence.below(static_cast<Index>(slots.size()) + 1);
    std::vector<Index> points;
    for (Index k = 0; k < 1 + sequence.below(20); ++k) points.push_back(sequence.below(n));
    const auto count = static_cast<Index>(points.size());
    columns->assign(first, points.data(), count);
    if (static_cast<Index>(slots.size()) < first + count) slots.resize(first + count);
    for (Index k = 0; k < count; ++k) slots[first + k] = points[k];
    const Index slot = sequence.below(static_cast<Index>(slots.size()));
    const Index point = sequence.below(n);
    columns->assign_slots(&slot, &point, 1);
    slots[slot] = point;
    if (round % 4 == 3) {
      slots.resize(slots.size() / 2 + 1);
      columns->truncate(static_cast<Index>(slots.size()));
    }
    const auto m = static_cast<Index>(slots.size());
    CHECK(columns->size() == m);
    const std::vector<T> found = full_matrix(gram, *columns);
    bool is_equal = true;
    for (Index i = 0; i < n; ++i) {
      for (Index c = 0; c < m; ++c) is_equal &= found[i * m + c] == K[i * n + slots[c]];
    }
    CHECK(is_equal);
  }
}

/// accumulate() gives the same bits however the rows and the columns are split, and keeps values.
template <class T>
void splits(const Gram<T>& gram, const ColumnSet& columns, const std::vector<T>& K) {
  const Index n = gram.size(), outputs = 2;
  const std::vector<Index> all = range(n);
  std::vector<double> coef;
  for (Index k = 0; k < n * outputs; ++k) coef.push_back(std::sin(static_cast<double>(k)));
  std::vector<double> whole(n * outputs, 0.5), parts(n * outputs, 0.5);
  std::vector<T> kept(n, T(-7));
  std::vector<KeptRow<T>> keep(n);
  keep[n / 2].floating = kept.data();
  gram.accumulate(all.data(), coef.data(), n, outputs, columns, 0, n, whole.data(), n,
                  {keep.data(), RowForm::floating});
  const Index cuts[] = {0, 1, 3, n / 3, n / 2 + 1, n};
  for (int r = 0; r + 1 < 6; ++r) {
    for (int c = 0; c + 1 < 6; ++c) {
      gram.accumulate(all.data() + cuts[r], coef.data() + cuts[r] * outputs, cuts[r + 1] - cuts[r],
                      outputs, columns, cuts[c], cuts[c + 1], parts.data(), n, {});
    }
  }
  CHECK(whole == parts);
  bool is_kept = true;
  for (Index c = 0; c < n; ++c) is_kept &= kept[c] == K[(n / 2) * n + c];
  CHECK(is_kept);
  double sum = 0.5;
  for (Index i = 0; i < n; ++i) sum += coef[i * outputs + 1] * static_cast<double>(K[i * n + 5]);
  CHECK_NEAR(whole[n + 5], sum, 1e-12);
  std::vector<T> line(n, T(-7));
  T* out = line.data() + 4;
  gram.rows(all.data() + 3, 1, columns, 4, n - 2, &out);
  bool is_row = line[3] == T(-7) && line[n - 2] == T(-7);
  for (Index c = 4; c < n - 2; ++c) is_row &= line[c] == K[3 * n + c];
  CHECK(is_row);
}

template <class T>
void layout(const Data& data, bool is_csr, Index capacity, Simd simd, Sequence& sequence) {
  const double tolerance = sizeof(T) == 4 ? 2e-6 : 1e-14;
  const auto gram = make_gram<T>(data.view(is_csr), single("rbf"), 2, simd);
  CHECK(gram->size() == data.n);
  CHECK(gram->simd() == simd);
  const auto columns = gram->make_columns(capacity);
  columns->assign(0, range(data.n).data(), data.n);
  const std::vector<T> K = full_matrix(*gram, *columns);
  double error = 0;
  for (Index i = 0; i < data.n; ++i) {
    for (Index j = 0; j < data.n; ++j) {
      error = std::fmax(error, std::fabs(static_cast<double>(K[i * data.n + j]) - data.rbf(i, j)));
    }
  }
  CHECK_NEAR(error, 0.0, tolerance);
  std::vector<double> diagonal(data.n);
  gram->diagonal(diagonal.data());
  for (double value : diagonal) CHECK(value == 1.0);
  splits(*gram, *columns, K);
  edits(*gram, 1, K, sequence);
  edits(*gram, capacity, K, sequence);
  const auto other = gram->make_columns_of(data.view(is_csr));
  CHECK(full_matrix(*gram, *other) == K);
}

/// Rows in fixed point hold the rounded values, the sums are of these whether a row is kept or not,
/// and nothing depends on how the columns are split.
void fixed_rows(const Data& data, bool is_csr, Simd simd) {
  const auto gram = make_gram<float>(data.view(is_csr), single("rbf"), 2, simd);
  CHECK(gram->is_within_unit());
  const Index n = data.n;
  const auto columns = gram->make_columns(n);
  columns->assign(0, range(n).data(), n);
  const std::vector<float> K = full_matrix(*gram, *columns);
  std::vector<double> coef, expected(n, 0.5);
  for (Index i = 0; i < n; ++i) coef.push_back(std::sin(static_cast<double>(i)));
  for (Index c = 0; c < n; ++c) {
    for (Index i = 0; i < n; ++i) {
      expected[c] +=
          coef[i] * kFixedUnit * std::rint(static_cast<double>(K[i * n + c] * kFixedOne));
    }
  }
  std::vector<double> first;
  for (const std::vector<Index>& cuts : {std::vector<Index>{0, n},
                                         {0, 1, n},
                                         {0, 64, 100, n},
                                         {0, 63, 65, 128, n - 1, n},
                                         {0, 200, n}}) {
    std::vector<FixedBlock> memory(static_cast<std::size_t>(n * fixed_blocks(n)));
    std::vector<KeptRow<float>> keep(n);
    for (Index i = 0; i < n; ++i) {
      if (i % 3 != 1) keep[i].fixed = memory.data() + i * fixed_blocks(n);
    }
    std::vector<double> sums(n, 0.5);
    for (std::size_t p = 0; p + 1 < cuts.size(); ++p) {
      gram->accumulate(range(n).data(), coef.data(), n, 1, *columns, cuts[p], cuts[p + 1],
                       sums.data(), n, {keep.data(), RowForm::fixed});
    }
    for (Index c = 0; c < n; ++c) CHECK_NEAR(sums[c], expected[c], 1e-12);
    if (first.empty()) first = sums;
    CHECK(sums == first);
    bool is_kept = true;
    for (Index i = 0; i < n; ++i) {
      for (Index c = 0; c < n && keep[i]; ++c) {
        FixedBlock alone[1];
        set_fixed_value(alone, 0, K[i * n + c]);
        is_kept &= fixed_value(keep[i].fixed, c) == fixed_value(alone, 0);
      }
    }
    CHECK(is_kept);
  }
  std::vector<double> sums(n, 0.5);
  gram->accumulate(range(n).data(), coef.data(), n, 1, *columns, 0, n, sums.data(), n,
                   {nullptr, RowForm::fixed});
  CHECK(sums == first);
}

/// Coarse rows hold the rounded values, the sums are of the values as they are, and nothing depends
/// on how the columns are split. What the rows are short of is what the sums of that add up to,
/// whichever point is the row: K has the same bits both ways.
void coarse_rows(const Data& data, bool is_csr, Simd simd, const char* kernel) {
  const auto gram = make_gram<float>(data.view(is_csr), single(kernel), 2, simd);
  CHECK(gram->is_within_unit());
  const Index n = data.n;
  const auto columns = gram->make_columns(n);
  columns->assign(0, range(n).data(), n);
  const std::vector<float> K = full_matrix(*gram, *columns);
  std::vector<double> coef, plain(n, 0.5);
  for (Index i = 0; i < n; ++i) coef.push_back(std::sin(static_cast<double>(i)));
  gram->accumulate(range(n).data(), coef.data(), n, 1, *columns, 0, n, plain.data(), n, {});
  for (const std::vector<Index>& cuts : {std::vector<Index>{0, n},
                                         {0, 1, n},
                                         {0, 64, 100, n},
                                         {0, 63, 65, 128, n - 1, n},
                                         {0, 200, n}}) {
    const Index ld = (n + 63) / 64 * 64;
    std::vector<std::uint16_t> memory(static_cast<std::size_t>(n * ld + 32), 7);
    std::uint16_t* aligned = memory.data();  // to lines, as the tier has them
    while (reinterpret_cast<std::uintptr_t>(aligned) % 64 != 0) ++aligned;
    std::vector<KeptRow<float>> keep(n);
    for (Index i = 0; i < n; ++i)
      if (i % 3 != 1) keep[i].coarse = aligned + i * ld;
    std::vector<double> sums(n, 0.5);
    for (std::size_t p = 0; p + 1 < cuts.size(); ++p) {
      gram->accumulate(range(n).data(), coef.data(), n, 1, *columns, cuts[p], cuts[p + 1],
                       sums.data(), n, {keep.data(), RowForm::coarse});
    }
    CHECK(sums == plain);
    bool is_kept = true;
    for (Index i = 0; i < n; ++i)
      for (Index c = 0; c < ld; ++c) {
        const int expected = keep[i] && c < n ? coarse_units(K[i * n + c]) : 7;
        is_kept &= aligned[i * ld + c] == expected;
      }
    CHECK(is_kept);
  }

  bool is_symmetric = true;
  std::vector<double> lost(n, 0.5), lost_both(n, 0.5), lost_rows(n, -0.5);
  std::vector<double> expected(n, 0.5), expected_rows(n, -0.5);
  for (Index c = 0; c < n; ++c) {
    for (Index i = 0; i < n; ++i) {
      const double short_of =
          static_cast<double>(K[i * n + c]) - kCoarseUnit * coarse_units(K[i * n + c]);
      is_symmetric &= K[i * n + c] == K[c * n + i];
      expected[c] += coef[i] * short_of;
      expected_rows[i] += coef[c] * short_of;
    }
  }
  CHECK(is_symmetric);
  gram->accumulate(range(n).data(), coef.data(), n, 1, *columns, 0, n, lost.data(), n,
                   {nullptr, RowForm::floating, Part::lost});
  gram->accumulate_both(range(n).data(), coef.data(), n, *columns, 0, n, coef.data(),
                        lost_both.data(), lost_rows.data(), Part::lost);
  for (Index c = 0; c < n; ++c) {
    CHECK_NEAR(lost[c], expected[c], 1e-12);
    CHECK_NEAR(lost_both[c], expected[c], 1e-12);
    CHECK_NEAR(lost_rows[c], expected_rows[c], 1e-12);
  }
}

/// Full tiles stay in registers where there is one output; with two, all go through memory. Bits
/// are the same, whatever the kernel, and whether rows are kept or the columns are cut.
template <class T>
void full_tiles(const char* name, Index d, Simd simd, Sequence& sequence) {
  const Data data(61, d, 0.9, sequence);
  const Index n = data.n;
  Kernel kernel = single(name);
  kernel.terms[0].leaves[0].gamma = 0.5 / static_cast<double>(d);
  kernel.terms[0].leaves[0].coef0 = 0.25;
  kernel.terms[0].leaves[0].degree = 3;
  const auto gram = make_gram<T>(data.view(false), kernel, 1, simd);
  const auto columns = gram->make_columns(n);
  columns->assign(0, range(n).data(), n);
  std::vector<double> coef, doubled;
  for (Index i = 0; i < n; ++i) {
    coef.push_back(std::sin(static_cast<double>(i)));
    doubled.insert(doubled.end(), {coef.back(), 1.0});
  }
  std::vector<double> expected(2 * n, 0.5), sums(n, 0.5), kept_sums(n, 0.5);
  gram->accumulate(range(n).data(), doubled.data(), n, 2, *columns, 0, n, expected.data(), n, {});
  expected.resize(n);
  const std::vector<T> K = full_matrix(*gram, *columns);
  std::vector<T> kept(n * n);
  std::vector<KeptRow<T>> keep(n);
  for (Index i = 0; i < n; ++i) keep[i].floating = kept.data() + i * n;
  const Index cuts[] = {0, 5, n - 3, n};
  for (int c = 0; c < 3; ++c)
    gram->accumulate(range(n).data(), coef.data(), n, 1, *columns, cuts[c], cuts[c + 1],
                     sums.data(), n, {});
  gram->accumulate(range(n).data(), coef.data(), n, 1, *columns, 0, n, kept_sums.data(), n,
                   {keep.data(), RowForm::floating});
  CHECK(sums == expected);
  CHECK(kept_sums == expected);
  CHECK(kept == K);
  std::vector<T> alone(n);  // a single row is no full tile
  for (Index i = 0; i < n; ++i) {
    T* out = alone.data();
    gram->rows(&i, 1, *columns, 0, n, &out);
    CHECK(std::equal(alone.begin(), alone.end(), K.begin() + i * n));
  }
  // Each value serves its row and its column.
  std::vector<double> by_column(n, 0.5), by_row(n, 0.25);
  gram->accumulate_both(range(n).data(), coef.data(), n, *columns, 3, n - 2, coef.data(),
                        by_column.data(), by_row.data(), Part::whole);
  for (Index i = 0; i < n; ++i) {
    double sum = 0.25, modulus = 1.0;
    for (Index c = 3; c < n - 2; ++c) {
      sum += coef[c] * static_cast<double>(K[i * n + c]);
      modulus += std::fabs(coef[c] * static_cast<double>(K[i * n + c]));
    }
    CHECK_NEAR(by_row[i], sum, 1e-13 * modulus);
    CHECK(by_column[i] == (i >= 3 && i < n - 2 ? expected[i] : 0.5));
  }
}

void all_full_tiles() {
  Sequence sequence;
  for (const Simd simd : kfu_test::instruction_sets())
    for (const char* name :
         {"linear", "poly", "rbf", "sigmoid", "rational", "squared-distance", "laplacian"})
      for (const Index d : {1, 8, 128, 129, 2049}) {
        full_tiles<float>(name, d, simd, sequence);
        full_tiles<double>(name, d, simd, sequence);
      }
}

void units() {
  Kernel kernel = single("rbf");
  CHECK(is_within_unit(kernel));
  kernel.terms.push_back(single("laplacian").terms[0]);
  CHECK(!is_within_unit(kernel));
  for (Term& term : kernel.terms) term.weight = 0.5;
  CHECK(is_within_unit(kernel));
  kernel.terms[1].weight = -0.5;
  CHECK(!is_within_unit(kernel));
  kernel = single("rbf");
  kernel.terms[0].leaves[0].form = Form::d_gamma;
  CHECK(!is_within_unit(kernel));
  for (const char* name : {"linear", "poly", "sigmoid", "intersection", "precomputed"}) {
    CHECK(!is_within_unit(single(name)));
  }
}

void layouts() {
  Sequence sequence;
  const Data few(61, 23, 0.4, sequence);
  const Data many(50, 5000, 0.01, sequence);
  const Data rows(523, 23, 0.4, sequence);  // enough values for two threads
  for (const Simd simd : {Simd::baseline, Simd::avx2, Simd::avx512}) {
    if (!has_simd(simd)) {
      CHECK_THROWS(make_gram<float>(few.view(false), single("rbf"), 1, simd),
                   std::invalid_argument);
      continue;
    }
    fixed_rows(rows, false, simd);
    fixed_rows(rows, true, simd);
    for (const char* kernel : {"rbf", "laplacian", "rational"})
      for (const bool is_csr : {false, true}) coarse_rows(rows, is_csr, simd, kernel);
    layout<float>(few, false, few.n, simd, sequence);
    layout<double>(few, false, few.n, simd, sequence);
    layout<float>(few, true, few.n, simd, sequence);
    layout<double>(few, true, few.n, simd, sequence);
    // Room for so many slots that the panels are not kept expanded.
    layout<float>(few, true, Index{800000}, simd, sequence);
    layout<float>(many, true, many.n, simd, sequence);
    layout<double>(many, true, many.n, simd, sequence);
    layout<double>(many, false, many.n, simd, sequence);
  }
}

void refusals() {
  Sequence sequence;
  const Data data(5, 3, 1.0, sequence);
  const Data wider(5, 4, 1.0, sequence);
  const auto gram = make_gram<double>(data.view(false), single("rbf"), 1, Simd::best);
  CHECK_THROWS(gram->make_columns_of(wider.view(false)), std::invalid_argument);
  CHECK_THROWS(gram->make_columns_of(data.view(true)), std::invalid_argument);
  CHECK_THROWS(make_gram<double>(data.view(false), Kernel(), 1, Simd::best), std::invalid_argument);
  Kernel scaled = single("rbf-ard");
  scaled.terms[0].leaves[0].scale.assign(2, 1.0);
  CHECK_THROWS(make_gram<double>(data.view(false), scaled, 1, Simd::best), std::invalid_argument);
  Kernel mixed = single("precomputed");
  mixed.terms.push_back(single("rbf").terms[0]);
  CHECK_THROWS(make_gram<double>(data.view(false), mixed, 1, Simd::best), std::invalid_argument);
  CHECK(kernel_kind("no such kernel") == -1);
}

void lookup() {
  Sequence sequence;
  const Data data(7, 7, 0.6, sequence);
  for (const bool is_csr : {false, true}) {
    const auto gram = make_gram<double>(data.view(is_csr), single("precomputed"), 1, Simd::best);
    const auto columns = gram->make_columns(7);
    columns->assign(0, range(7).data(), 7);
    const std::vector<double> K = full_matrix(*gram, *columns);
    for (Index i = 0; i < 7; ++i) {
      for (Index j = 0; j < 7; ++j) CHECK(K[i * 7 + j] == data.values[j * 7 + i]);
    }
  }
}

}  // namespace

int main() {
  layouts();
  all_full_tiles();
  units();
  lookup();
  refusals();
  return kfu_test::report("gram");
}

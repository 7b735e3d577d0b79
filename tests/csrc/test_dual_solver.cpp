// The dual solver over a plain scalar Gram: every rule, chunk and cache size reaches one optimum.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "check.h"
#include "kfu/certificate.h"
#include "kfu/dual_solver.h"
#include "kfu/exact_gradient.h"

namespace {

using namespace kfu;
using kfu_test::Stream;

// K(i, j) looked up in a matrix: the obvious Gram.
template <class T>
class MatrixGram final : public Gram<T> {
 public:
  MatrixGram(Index n, std::vector<T> values) : n_(n), values_(std::move(values)) {}

  class Columns final : public ColumnSet {
   public:
    Index size() const override { return static_cast<Index>(points.size()); }
    void assign(Index first, const Index* list, Index count) override {
      if (first + count > size()) points.resize(static_cast<std::size_t>(first + count));
      for (Index k = 0; k < count; ++k) points[first + k] = list[k];
    }
    void assign_slots(const Index* slots, const Index* list, Index count) override {
      for (Index k = 0; k < count; ++k) points.at(slots[k]) = list[k];
    }
    void truncate(Index size) override { points.resize(static_cast<std::size_t>(size)); }
    std::vector<Index> points;
  };

  Index size() const override { return n_; }
  Simd simd() const override { return Simd::baseline; }
  const char* layout() const override { return "dense"; }
  ValueError value_error() const override { return {}; }
  ValueError value_error_of(const ColumnSet&) const override { return {}; }
  bool is_within_unit() const override { return false; }
  Index panel_width() const override { return 1; }
  void diagonal(double* out) const override {
    for (Index i = 0; i < n_; ++i) out[i] = value(i, i);
  }
  std::unique_ptr<ColumnSet> make_columns(Index) const override {
    return std::unique_ptr<ColumnSet>(new Columns);
  }
  std::unique_ptr<ColumnSet> make_columns_of(const DataView&) const override { return nullptr; }
  void rows(const Index* points, Index n_rows, const ColumnSet& columns, Index first, Index last,
            T* const* out) const override {
    const auto& set = static_cast<const Columns&>(columns);
    for (Index r = 0; r < n_rows; ++r)
      for (Index c = first; c < last; ++c) out[r][c - first] = value(points[r], set.points[c]);
  }
  void accumulate(const Index* points, const double* coef, Index n_rows, Index n_outputs,
                  const ColumnSet& columns, Index first, Index last, double* sums, Index ld,
                  const KeepRows<T>& keep) const override {
    const auto& set = static_cast<const Columns&>(columns);
    for (Index r = 0; r < n_rows; ++r)
      for (Index c = first; c < last; ++c) {
        const T k = value(points[r], set.points[c]);
        if (keep.rows != nullptr && keep.rows[r].floating != nullptr) keep.rows[r].floating[c] = k;
        for (Index m = 0; m < n_outputs; ++m)
          sums[m * ld + c] += coef[r * n_outputs + m] * static_cast<double>(k);
      }
  }
  void accumulate_both(const Index* points, const double* coef, Index n_rows,
                       const ColumnSet& columns, Index first, Index last, const double* column_coef,
                       double* sums, double* row_sums, Part) const override {
    accumulate(points, coef, n_rows, 1, columns, first, last, sums, 0, {});
    const auto& set = static_cast<const Columns&>(columns);
    for (Index r = 0; r < n_rows; ++r)
      for (Index c = first; c < last; ++c)
        row_sums[r] += column_coef[c] * static_cast<double>(value(points[r], set.points[c]));
  }

 private:
  T value(Index i, Index j) const { return values_[i * n_ + j]; }
  Index n_;
  std::vector<T> values_;
};

struct Toy {
  DualProblem problem;
  std::vector<float> k32;
  std::vector<double> k64;
};

Toy make_toy(Index n, double cost, double gamma, bool equality, bool duplicates) {
  Stream random;
  std::vector<double> x(static_cast<std::size_t>(3 * n));
  Toy toy;
  for (Index i = 0; i < n; ++i) {
    for (int k = 0; k < 3; ++k) x[3 * i + k] = 4.0 * random.next() - 2.0;
    if (duplicates && i % 7 == 6)
      for (int k = 0; k < 3; ++k) x[3 * i + k] = x[3 * (i - 1) + k];
    const double noise = 2.0 * random.next() - 1.0;
    const double label = std::sin(2.0 * x[3 * i]) + x[3 * i + 1] + noise > 0.0 ? 1.0 : -1.0;
    toy.problem.linear.push_back(-label);
    toy.problem.lower.push_back(label > 0 ? 0.0 : -cost);
    toy.problem.upper.push_back(label > 0 ? cost : 0.0);
    toy.problem.points.push_back(i);
  }
  toy.problem.has_equality = equality;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      double d = 0.0;
      for (int k = 0; k < 3; ++k)
        d += (x[3 * i + k] - x[3 * j + k]) * (x[3 * i + k] - x[3 * j + k]);
      toy.k64.push_back(std::exp(-gamma * d));
      toy.k32.push_back(static_cast<float>(toy.k64.back()));
    }
  return toy;
}

template <class T>
Certificate run(const Toy& toy, const Gram<T>& gram, const SolverSettings& settings,
                const std::vector<double>& start, Info* info) {
  DualSolver<T> solver(gram, toy.problem, start, nullptr, settings, nullptr);
  Status status = Status::running;
  for (int guard = 0; status == Status::running && guard < 200000; ++guard) status = solver.round();
  CHECK(status == Status::optimal);
  const std::vector<double> beta = solver.beta();
  double sum = 0.0;
  for (Index k = 0; k < toy.problem.size(); ++k) {
    CHECK(beta[k] >= toy.problem.lower[k] && beta[k] <= toy.problem.upper[k]);
    sum += beta[k];
  }
  if (toy.problem.has_equality) CHECK(std::fabs(sum) < 1e-9);
  std::vector<double> F;
  const MatrixGram<double> exact(toy.problem.size(), toy.k64);
  exact_gradient(toy.problem, beta, exact, 1, nullptr, F);
  if (info != nullptr) *info = solver.info();
  return certify(toy.problem, beta, F);
}

template <class T>
void all_settings(const Toy& toy, const std::vector<T>& values, const char* name) {
  const Index n = toy.problem.size();
  const MatrixGram<T> gram(n, values);
  const std::vector<double> zeros(static_cast<std::size_t>(n), 0.0);
  SolverSettings settings;
  settings.tolerance = 1e-4;
  settings.chunk = n;
  const Certificate reference = run(toy, gram, settings, zeros, nullptr);
  CHECK(reference.kkt_gap < 2e-4);
  CHECK(reference.duality_gap < 1e-3 * (1.0 + reference.objective));
  for (const WorkingSetRule rule : {WorkingSetRule::svmfu, WorkingSetRule::svmlight,
                                    WorkingSetRule::osuna, WorkingSetRule::keerthi})
    for (const Index chunk : {Index(0), Index(2), Index(3), Index(40), Index(150), n})
      for (const double rows : {0.0, 1.0, 20.0, 1e6})
        // Without shrinking, and with it where values are dear and where they are cheap.
        for (const double value_cost : {0.0, 1e9, 3.0}) {
          const bool shrinking = value_cost > 0.0;
          settings = SolverSettings{};
          if (shrinking) settings.value_cost = value_cost;
          settings.tolerance = 1e-4;
          settings.working_set = rule;
          settings.chunk = chunk;
          settings.cache_bytes = rows * static_cast<double>(n) * sizeof(T);
          settings.shrinking = shrinking;
          settings.pair = chunk == 40 ? PairRule::first_order : PairRule::second_order;
          const Certificate c = run(toy, gram, settings, zeros, nullptr);
          const bool close =
              std::fabs(c.objective - reference.objective) <= 1e-6 * (1.0 + reference.objective);
          CHECK(close);
          CHECK(c.kkt_gap < 2e-4);
          if (!close || c.kkt_gap >= 2e-4)
            std::printf("  %s rule %d chunk %ld rows %g value %g: %.9f against %.9f, gap %g\n",
                        name, static_cast<int>(rule), static_cast<long>(chunk), rows, value_cost,
                        c.objective, reference.objective, c.kkt_gap);
        }
}

// Cheap rows that are computed over and over: variables are dropped before the gap falls, come back
// for a look while it is still wide, and the answer is that of a run that drops none.
void early_stage_looks_at_what_it_dropped() {
  const Index n = 1500;
  const Toy toy = make_toy(n, 50.0, 2.0, true, false);
  const MatrixGram<float> gram(n, toy.k32);
  const std::vector<double> zeros(static_cast<std::size_t>(n), 0.0);
  SolverSettings settings;
  settings.chunk = 60;
  settings.cache_bytes = 61.0 * 60.0 * sizeof(float);  // no rows
  settings.value_cost = 3.0;
  settings.shrinking = false;
  Info plain_info, info;
  const Certificate plain = run(toy, gram, settings, zeros, &plain_info);
  settings.shrinking = true;
  const Certificate shrunk = run(toy, gram, settings, zeros, &info);
  CHECK(plain.kkt_gap < 2e-3 && shrunk.kkt_gap < 2e-3);
  CHECK_NEAR(shrunk.objective, plain.objective, 1e-4 * plain.objective);
  CHECK(info.kernel_evaluations < plain_info.kernel_evaluations);

  DualSolver<float> solver(gram, toy.problem, zeros, nullptr, settings, nullptr);
  Index before = n;
  double widest_gap = 0.0;
  int n_dropped = 0, n_looks = 0;  // while the gap is at least a tenth of its widest
  while (solver.round() == Status::running) {
    widest_gap = std::max(widest_gap, solver.info().gap);
    const Index now = solver.info().n_active;
    if (solver.info().gap > 0.1 * widest_gap) {
      n_dropped += now < before;
      n_looks += now > before;
    }
    before = now;
  }
  CHECK(n_dropped > 0);
  CHECK(n_looks == 1);
}

// Symmetry and irrelevance change the work of a certificate, not its figures.
void exact_gradient_skips_only_what_does_not_matter() {
  const Index n = 2600;  // several blocks of rows and of columns
  for (const bool equality : {true, false}) {
    const Toy toy = make_toy(n, 0.5, 0.5, equality, false);
    const MatrixGram<double> gram(n, toy.k64);
    SolverSettings settings;
    DualSolver<double> solver(gram, toy.problem, std::vector<double>(n, 0.0), nullptr, settings,
                              nullptr);
    while (solver.round() == Status::running) {
    }
    const std::vector<double> beta = solver.beta();
    std::vector<double> naive(toy.problem.linear), full, partial;
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) naive[i] += toy.k64[i * n + j] * beta[j];
    const Index all = exact_gradient(toy.problem, beta, gram, 2, nullptr, full);
    for (Index i = 0; i < n; ++i) CHECK_NEAR(full[i], naive[i], 1e-10);
    Stream random;
    ApproximateGradient approximate{naive, std::vector<double>(n, 0.05), 0.0, {}};
    for (double& value : approximate.values) value += 0.1 * (random.next() - 0.5);
    const Index some = exact_gradient(toy.problem, beta, gram, 1, &approximate, partial);
    CHECK(some < all);
    const Certificate a = certify(toy.problem, beta, full);
    const Certificate b = certify(toy.problem, beta, partial);
    CHECK(a.objective == b.objective && a.duality_gap == b.duality_gap);
    CHECK(a.kkt_gap == b.kkt_gap && a.kkt_violation == b.kkt_violation);
    CHECK(a.bias == b.bias && a.bias_std == b.bias_std);
  }
}

void warm_start_is_cheap() {
  const Toy toy = make_toy(400, 10.0, 0.5, true, false);
  const MatrixGram<double> gram(400, toy.k64);
  SolverSettings settings;
  settings.tolerance = 1e-6;
  settings.chunk = 100;
  DualSolver<double> cold(gram, toy.problem, std::vector<double>(400, 0.0), nullptr, settings,
                          nullptr);
  while (cold.round() == Status::running) {
  }
  Info info;
  run(toy, gram, settings, cold.beta(), &info);
  CHECK(info.iterations <= 5);
}

}  // namespace

int main() {
  all_settings(make_toy(300, 1.0, 0.5, true, false), make_toy(300, 1.0, 0.5, true, false).k32,
               "f32");
  all_settings(make_toy(300, 10.0, 2.0, true, true), make_toy(300, 10.0, 2.0, true, true).k64,
               "dup");
  all_settings(make_toy(300, 1.0, 0.5, false, false), make_toy(300, 1.0, 0.5, false, false).k64,
               "no bias");
  early_stage_looks_at_what_it_dropped();
  exact_gradient_skips_only_what_does_not_matter();
  warm_start_is_cheap();
  return kfu_test::report("dual solver");
}

// The factor of the free variables and the path, against what they have to satisfy.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "check.h"
#include "kfu/free_factor.h"
#include "kfu/kernel_rows.h"
#include "kfu/parametric_closing.h"
#include "kfu/parametric_run.h"

namespace {

using namespace kfu;

// Plain versions of the routines, for the lower triangle alone.
void trsv(char*, char* trans, char*, int* n, double* a, int* lda, double* x, int*) {
  if (*trans == 'N') {
    for (int i = 0; i < *n; ++i) {
      for (int k = 0; k < i; ++k) x[i] -= a[k * *lda + i] * x[k];
      x[i] /= a[i * *lda + i];
    }
    return;
  }
  for (int i = *n - 1; i >= 0; --i) {
    for (int k = i + 1; k < *n; ++k) x[i] -= a[i * *lda + k] * x[k];
    x[i] /= a[i * *lda + i];
  }
}

void rot(int* n, double* x, int*, double* y, int*, double* c, double* s) {
  for (int k = 0; k < *n; ++k) {
    const double a = x[k], b = y[k];
    x[k] = *c * a + *s * b;
    y[k] = *c * b - *s * a;
  }
}

// B ← B L⁻ᵀ from the right, L⁻ᵀ B from the left.
void trsm(char* side, char* uplo, char* trans, char* diag, int* m, int* n, double*, double* a,
          int* lda, double* b, int* ldb) {
  int one = 1;
  if (*side == 'L') {
    for (int c = 0; c < *n; ++c) trsv(uplo, trans, diag, m, a, lda, b + c * *ldb, &one);
    return;
  }
  char no = 'N';
  std::vector<double> row(static_cast<std::size_t>(*n));
  for (int r = 0; r < *m; ++r) {
    for (int c = 0; c < *n; ++c) row[c] = b[c * *ldb + r];
    trsv(uplo, &no, diag, n, a, lda, row.data(), &one);
    for (int c = 0; c < *n; ++c) b[c * *ldb + r] = row[c];
  }
}

// C += A B.
void gemm(char*, char*, int* m, int* n, int* k, double*, double* a, int* lda, double* b, int* ldb,
          double*, double* c, int* ldc) {
  for (int j = 0; j < *n; ++j)
    for (int l = 0; l < *k; ++l)
      for (int i = 0; i < *m; ++i) c[j * *ldc + i] += a[l * *lda + i] * b[j * *ldb + l];
}

// The same with an error in the fifth digit of one row.
void inexact_gemm(char* transa, char* transb, int* m, int* n, int* k, double* alpha, double* a,
                  int* lda, double* b, int* ldb, double* beta, double* c, int* ldc) {
  gemm(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  for (int j = 0; j < *n; ++j) c[j * *ldc + *m / 2] += 1e-5;
}

void gemv(char* trans, int* m, int* n, double* alpha, double* a, int* lda, double* x, int*,
          double* beta, double* y, int*) {
  int one = 1;
  gemm(trans, trans, m, &one, n, alpha, a, lda, x, n, beta, y, m);
}

void potrf(char*, int* n, double* a, int* lda, int* info) {
  *info = 0;
  for (int k = 0; k < *n; ++k) {
    for (int i = k; i < *n; ++i)
      for (int l = 0; l < k; ++l) a[k * *lda + i] -= a[l * *lda + i] * a[l * *lda + k];
    if (!(a[k * *lda + k] > 0.0)) {
      *info = k + 1;
      return;
    }
    const double root = std::sqrt(a[k * *lda + k]);
    for (int i = k; i < *n; ++i) a[k * *lda + i] /= root;
  }
}

Lapack plain() {
  Lapack lapack;
  lapack.dtrsv = trsv;
  lapack.drot = rot;
  lapack.dtrsm = trsm;
  lapack.dgemv = gemv;
  lapack.dgemm = gemm;
  lapack.dpotrf = potrf;
  return lapack;
}

// Rotations that spoil what they turn in the tenth digit.
void inexact_rot(int* n, double* x, int* incx, double* y, int* incy, double* c, double* s) {
  rot(n, x, incx, y, incy, c, s);
  for (int k = 0; k < *n; ++k) x[k] *= 1.0 + 1e-10 * std::sin(1.0 + k);
}

double entry(Index i, Index j) { return std::exp(-0.1 * (i - j) * (i - j)) + (i == j ? 0.5 : 0.0); }

void factor_follows_insertions_and_removals() {
  FreeFactor factor(plain(), 1);
  std::vector<Index> inside;
  const auto insert = [&](Index i) {
    std::vector<double> column;
    for (Index k : inside) column.push_back(entry(i, k));
    const double pivot = factor.try_insert(column.data(), entry(i, i));
    CHECK(pivot > 0.0);
    factor.insert(pivot, std::sin(1.0 + i), 0);
    inside.push_back(i);
  };
  for (Index i = 0; i < 90; ++i) insert((i * 37) % 97);
  for (Index k : {89, 0, 40, 3, 3, 20}) {
    factor.remove(k);
    inside.erase(inside.begin() + k);
  }
  insert(95);
  const FreeFactor copy(factor);
  for (int which = 0; which < 2; ++which) {
    FreeFactor tested(which == 0 ? factor : copy);
    std::vector<double> x(inside.size());
    const double mu[] = {0.75};
    tested.solve(mu, x.data());
    for (std::size_t r = 0; r < inside.size(); ++r) {
      double sum = 0.0;
      for (std::size_t k = 0; k < inside.size(); ++k) sum += entry(inside[r], inside[k]) * x[k];
      CHECK_NEAR(sum, std::sin(1.0 + inside[r]) + 0.75, 1e-10);
    }
  }
  // A column that depends on those inside: the pivot vanishes, and the dependence says how.
  std::vector<double> column;
  for (Index k : inside) column.push_back(entry(inside[5], k));
  CHECK_NEAR(factor.try_insert(column.data(), entry(inside[5], inside[5])), 0.0, 1e-12);
  std::vector<double> v(inside.size());
  factor.dependence(v.data());
  for (std::size_t k = 0; k < v.size(); ++k) CHECK_NEAR(v[k], k == 5 ? 1.0 : 0.0, 1e-9);
}

void a_rebuilt_factor_is_exact_again() {
  Lapack spoiling = plain();
  spoiling.drot = inexact_rot;
  FreeFactor factor(spoiling, 1);
  std::vector<Index> inside;
  for (Index i = 0; i < 60; ++i) {
    std::vector<double> column;
    for (Index k : inside) column.push_back(entry(i, k));
    factor.insert(factor.try_insert(column.data(), entry(i, i)), std::sin(1.0 + i), i % 2 - 1);
    inside.push_back(i);
  }
  for (Index k : {0, 10, 20}) {
    factor.remove(k);
    inside.erase(inside.begin() + k);
  }
  CHECK(factor.changes() == 63);
  const auto residual = [&] {
    std::vector<double> x(inside.size());
    const double mu[] = {0.75};
    factor.solve(mu, x.data());
    double worst = 0.0;
    for (std::size_t r = 0; r < inside.size(); ++r) {
      double sum = -std::sin(1.0 + inside[r]) - (inside[r] % 2 == 1 ? 0.75 : 0.0);
      for (std::size_t k = 0; k < inside.size(); ++k) sum += entry(inside[r], inside[k]) * x[k];
      worst = std::max(worst, std::fabs(sum));
    }
    return worst;
  };
  CHECK(residual() > 1e-12);
  const Index n = factor.size();
  Buffer<double> M(n * n);
  std::vector<double> right;
  std::vector<int> groups;
  for (Index i : inside) {
    right.push_back(std::sin(1.0 + i));
    groups.push_back(static_cast<int>(i % 2) - 1);
  }
  for (Index k = 0; k < n; ++k)
    for (Index r = 0; r < n; ++r) M[k * n + r] = entry(inside[r], inside[k]);
  CHECK(factor.rebuild(M, right.data(), groups.data()));
  CHECK(factor.changes() == 0);
  CHECK(residual() < 1e-14);
  for (Index k = 0; k < n * n; ++k) M[k] = -1.0;  // no factor: what is there stays
  CHECK(!factor.rebuild(M, right.data(), groups.data()));
  CHECK(residual() < 1e-14);
}

// Points on a small grid, so that many are equal.
struct Problem {
  std::vector<double> X, y;
  std::shared_ptr<KernelStore> store;
  Index n, d = 2;

  explicit Problem(Index rows, bool is_grid = true) : n(rows) {
    for (Index i = 0; i < n; ++i) {
      y.push_back(i % 2 == 0 ? 1.0 : -1.0);
      X.push_back(2.0 * std::sin(3.7 * i) + 0.7 * y[i]);
      X.push_back(2.0 * std::cos(1.3 * i * i));
    }
    if (is_grid)
      for (double& x : X) x = std::round(x);
    DataView view;
    view.n = n, view.d = d, view.ld = d, view.values = X.data();
    Kernel kernel;
    kernel.terms.resize(1);
    kernel.terms[0].weight = 1.0;
    kernel.terms[0].leaves.resize(1);
    kernel.terms[0].leaves[0].kind = kernel_kind("rbf");
    kernel.terms[0].leaves[0].gamma = 0.5;
    store = std::make_shared<KernelStore>(view, kernel, 1, Simd::best);
  }

  double K(Index i, Index j) const {
    const double a = X[2 * i] - X[2 * j], b = X[2 * i + 1] - X[2 * j + 1];
    return std::exp(-0.5 * (a * a + b * b));
  }

  ParametricProblem path() const {
    ParametricProblem p;
    for (Index i = 0; i < n; ++i) {
      p.linear.value.push_back(0.0);
      p.linear.rate.push_back(-y[i]);
      p.lower.value.push_back(std::min(0.0, y[i]));
      p.upper.value.push_back(std::max(0.0, y[i]));
    }
    return p;
  }

  std::shared_ptr<KernelRows> rows(double bytes) const {
    std::vector<Index> points(static_cast<std::size_t>(n));
    std::iota(points.begin(), points.end(), Index{0});
    auto made = std::make_shared<KernelRows>(store, points, nullptr, bytes);
    made->fill();
    return made;
  }

  // The worst violation of the conditions at λ, from scratch.
  double violation(const std::vector<double>& beta, double theta, double lambda) const {
    double worst = 0.0, sum = 0.0;
    for (Index i = 0; i < n; ++i) {
      double F = -lambda * y[i];
      for (Index j = 0; j < n; ++j) F += K(i, j) * beta[j];
      sum += beta[i];
      if (beta[i] < std::max(0.0, y[i])) worst = std::max(worst, theta - F);
      if (beta[i] > std::min(0.0, y[i])) worst = std::max(worst, F - theta);
    }
    return std::max(worst, std::fabs(sum));
  }
};

void path_keeps_the_conditions(double bytes) {
  const Problem problem(40);
  ParametricSettings settings;
  for (double label : problem.y) settings.labels.push_back(label > 0 ? 1 : -1);
  ParametricRun run(problem.rows(bytes), problem.path(), problem.y, 40.0, settings, plain());
  Index steps = 0;
  for (double stop : {20.0, 5.0, 1.0, 0.3, 0.1, 0.01}) {
    const PathStatus status = run.advance(stop, 1000);
    CHECK(status == PathStatus::done);
    CHECK(problem.violation(run.beta(), run.theta(0), stop) <= 1e-11);
    steps = run.steps();
  }
  CHECK(steps > 20);
  CHECK(run.breakpoints().back().errors[0] >= 0);
  // And back.
  CHECK(run.advance(2.0, 1000) == PathStatus::done);
  CHECK(problem.violation(run.beta(), run.theta(0), 2.0) <= 1e-11);
}

void closing_a_box_leaves_the_others_optimal() {
  const Problem problem(30);
  ParametricSettings settings;
  settings.records = false;
  ParametricRun run(problem.rows(1e9), problem.path(), problem.y, 40.0, settings, plain());
  CHECK(run.advance(1.0, 1000) == PathStatus::done);
  for (Index p = 0; p < problem.n; ++p) {
    ParametricRun without(run);
    CHECK(without.close_boxes(&p, 1, nullptr) == PathStatus::running);
    CHECK(without.beta()[p] == 0.0);
    // Optimal but for p, whose own slack does not count.
    std::vector<double> beta = without.beta();
    double worst = 0.0;
    for (Index i = 0; i < problem.n; ++i) {
      if (i == p) continue;
      double F = -problem.y[i];
      for (Index j = 0; j < problem.n; ++j) F += problem.K(i, j) * beta[j];
      if (beta[i] < std::max(0.0, problem.y[i])) worst = std::max(worst, without.theta(0) - F);
      if (beta[i] > std::min(0.0, problem.y[i])) worst = std::max(worst, F - without.theta(0));
    }
    CHECK(worst <= 1e-11);
  }
}

// Where the factor is spoilt by every removal, the residuals of directions show it, and it is
// computed afresh; the path is as exact as ever.
void a_spoilt_factor_is_computed_afresh() {
  const Problem problem(60, false);
  ParametricSettings settings;
  Lapack spoiling = plain();
  spoiling.drot = inexact_rot;
  ParametricRun run(problem.rows(1e9), problem.path(), problem.y, 60.0, settings, spoiling);
  for (double stop : {5.0, 0.3, 0.01}) {
    CHECK(run.advance(stop, 1000) == PathStatus::done);
    CHECK(problem.violation(run.beta(), run.theta(0), stop) <= 1e-11);
  }
  CHECK(run.refactorings() > 5);
  CHECK(run.residual() < 1e-13);
  for (const Breakpoint& b : run.breakpoints()) CHECK(b.kkt <= 1e-11);
  ParametricRun sound(problem.rows(1e9), problem.path(), problem.y, 60.0, settings, plain());
  CHECK(sound.advance(0.01, 1000) == PathStatus::done);
  CHECK(sound.refactorings() == 0);
  CHECK(sound.residual() < 1e-14);
}

// Closing boxes by the tableau against closing them by a run of their own.
void the_tableau_finds_what_a_run_finds(bool is_grid, bool has_equality, double bytes) {
  const Problem problem(50, is_grid);
  ParametricSettings settings;
  settings.records = false;
  ParametricProblem path = problem.path();
  path.has_equality = has_equality;
  ParametricRun run(problem.rows(1e9), path, problem.y, 50.0, settings, plain());
  CHECK(run.advance(0.5, 1000) == PathStatus::done);
  ParametricTableau tableau(run, bytes);
  CHECK(tableau.is_there());
  tableau.project(0, 7);
  tableau.project(7, tableau.n_bounded());
  tableau.make_totals();
  std::vector<Index> all(static_cast<std::size_t>(problem.n));
  std::iota(all.begin(), all.end(), Index{0});
  tableau.make_columns(all.data(), 0, 20);
  CHECK(std::fabs(tableau.mismatch(tableau.following().data(), tableau.given().data())) < 1e-12);
  ParametricClosing closing(tableau);
  Index n_found = 0, n_steps = 0;
  for (Index p : all) {
    if (!closing.close(&p, 1, nullptr)) continue;
    ++n_found;
    n_steps += closing.steps();
    ParametricRun without(run);
    CHECK(without.close_boxes(&p, 1, nullptr) == PathStatus::running);
    CHECK_NEAR(closing.output(), without.output(p), 1e-11);
    CHECK_NEAR(closing.theta(0), without.theta(0), 1e-11);
  }
  CHECK(n_found >= (is_grid ? 10 : problem.n));
  CHECK(n_steps > n_found);
}

// Results of a tableau that is wrong in one row are refused, not handed out.
void a_wrong_tableau_is_noticed() {
  const Problem problem(50, false);
  ParametricSettings settings;
  settings.records = false;
  Lapack wrong = plain();
  wrong.dgemm = inexact_gemm;
  ParametricRun run(problem.rows(1e9), problem.path(), problem.y, 50.0, settings, wrong);
  CHECK(run.advance(0.5, 1000) == PathStatus::done);
  ParametricTableau tableau(run, 1e9);
  tableau.project(0, tableau.n_bounded());
  tableau.make_totals();
  std::vector<Index> all(static_cast<std::size_t>(problem.n));
  std::iota(all.begin(), all.end(), Index{0});
  tableau.make_columns(all.data(), 0, problem.n);
  ParametricClosing closing(tableau);
  Index n_refused = 0, n_moved = 0;
  for (Index p : all) {
    if (run.beta()[p] == 0.0) continue;
    ++n_moved;
    if (!closing.close(&p, 1, nullptr)) {
      ++n_refused;
      continue;
    }
    ParametricRun without(run);  // the error does not matter for it
    CHECK(without.close_boxes(&p, 1, nullptr) == PathStatus::running);
    CHECK_NEAR(closing.output(), without.output(p), 1e-9);
  }
  CHECK(n_moved > 20);
  CHECK(n_refused > 0.9 * n_moved);
}

void no_tableau_without_free_variables() {
  const Problem problem(30);
  ParametricSettings settings;
  ParametricRun run(problem.rows(1e9), problem.path(), problem.y, 1e4, settings, plain());
  CHECK(run.n_free() == 0);
  CHECK(!ParametricTableau(run, 1e9).is_there());
}

}  // namespace

int main() {
  factor_follows_insertions_and_removals();
  a_rebuilt_factor_is_exact_again();
  a_spoilt_factor_is_computed_afresh();
  for (bool is_grid : {false, true})
    for (bool has_equality : {false, true})
      for (double bytes : {1e9, 0.0})
        the_tableau_finds_what_a_run_finds(is_grid, has_equality, bytes);
  a_wrong_tableau_is_noticed();
  no_tableau_without_free_variables();
  path_keeps_the_conditions(1e9);
  path_keeps_the_conditions(1000.0);  // rows come and go
  closing_a_box_leaves_the_others_optimal();
  return kfu_test::report("parametric");
}

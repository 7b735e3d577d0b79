// The factor of the free variables and the path, against what they have to satisfy.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "check.h"
#include "kfu/free_factor.h"
#include "kfu/kernel_rows.h"
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

Lapack plain() {
  Lapack lapack;
  lapack.dtrsv = trsv;
  lapack.drot = rot;
  return lapack;
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

// Points on a small grid, so that many are equal.
struct Problem {
  std::vector<double> X, y;
  std::shared_ptr<KernelStore> store;
  Index n, d = 2;

  explicit Problem(Index rows) : n(rows) {
    for (Index i = 0; i < n; ++i) {
      y.push_back(i % 2 == 0 ? 1.0 : -1.0);
      X.push_back(std::round(2.0 * std::sin(3.7 * i) + 0.7 * y[i]));
      X.push_back(std::round(2.0 * std::cos(1.3 * i * i)));
    }
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

}  // namespace

int main() {
  factor_follows_insertions_and_removals();
  path_keeps_the_conditions(1e9);
  path_keeps_the_conditions(1000.0);  // rows come and go
  closing_a_box_leaves_the_others_optimal();
  return kfu_test::report("parametric");
}

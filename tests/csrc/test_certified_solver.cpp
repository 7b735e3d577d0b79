// What a certificate claims, against F from float64 values of K: starts far from the solution,
// chunks that hold all variables from the first or grow to, rows of every form, runs so long that
// the maintained F is looked at on the way.
#include "kfu/certified_solver.h"

#include <memory>
#include <vector>

#include "check.h"
#include "kfu/certificate.h"
#include "kfu/exact_gradient.h"

namespace {

using namespace kfu;
using kfu_test::Stream;

double centred(Stream& random) {  // variance 1, nearly normal
  double sum = -6.0;
  for (int k = 0; k < 12; ++k) sum += random.next();
  return sum;
}

std::vector<double> cloud(Index n, Index d, Stream& random) {
  std::vector<double> X;
  for (Index k = 0; k < n * d; ++k) X.push_back(centred(random));
  return X;
}

DataView view_of(const std::vector<double>& X, Index n, Index d) {
  DataView data;
  data.n = n;
  data.d = d;
  data.values = X.data();
  data.ld = d;
  return data;
}

Kernel rbf(double gamma) {
  Kernel kernel;
  kernel.terms.resize(1);
  kernel.terms[0].leaves.resize(1);
  kernel.terms[0].leaves[0].kind = kernel_kind("rbf");
  kernel.terms[0].leaves[0].gamma = gamma;
  return kernel;
}

// The certificate meets the tolerance, and is what float64 values give from scratch.
void check_claim(CertifiedSolver& solver, KernelStore& store, const DualProblem& problem,
                 double tolerance, int threads) {
  const std::vector<double> beta = solver.beta();
  std::vector<double> F;
  exact_gradient(problem, beta, store.gram<double>(), threads, nullptr, F);
  const double truth = certify(problem, beta, F).kkt_gap;
  CHECK(truth <= tolerance * (1.0 + 1e-6));
  CHECK_NEAR(solver.certificate().kkt_gap, truth, 1e-9);
}

// A problem whose solution is nearly 0, from a start with every |β| at the bound: an error that is
// proportional to the start, and not to what β changes, shows in F.
void far_start(Index n, Index d, double cache_bytes, int threads) {
  Stream random;
  const double bound = 1000.0;
  const std::vector<double> X = cloud(n, d, random);
  DualProblem problem;
  problem.has_equality = false;
  std::vector<double> start;
  for (Index i = 0; i < n; ++i) {
    const double sign = random.next() < 0.5 ? -1.0 : 1.0;
    problem.linear.push_back(sign * (0.05 + 2e-3 * (random.next() - 0.5)));
    problem.kink.push_back(0.05);
    problem.lower.push_back(-bound);
    problem.upper.push_back(bound);
    problem.points.push_back(i);
    start.push_back(random.next() < 0.5 ? -bound : bound);
  }
  SolverSettings settings;
  settings.tolerance = 1e-4;
  settings.threads = threads;
  if (cache_bytes > 0.0) settings.cache_bytes = cache_bytes;
  const auto store = std::make_shared<KernelStore>(
      view_of(X, n, d), rbf(0.6 / static_cast<double>(d)), threads, Simd::best);
  CertifiedSolver solver(store, problem, start, settings, Precision::automatic);
  Status status = Status::running;
  for (int rounds = 0; status == Status::running && rounds < 20000; ++rounds)
    status = solver.round();
  CHECK(status == Status::optimal);
  check_claim(solver, *store, problem, settings.tolerance, threads);
}

struct Outcome {
  std::vector<double> beta;
  Info info;
};

// Noisy classes, unbounded variables by the hundred, rows of two bytes a value.
Outcome solve_on_coarse_rows(const std::vector<double>& X, Index n, Index d, double cost,
                             double gamma, SolverSettings settings) {
  DualProblem problem;
  for (Index i = 0; i < n; ++i) {
    const bool is_positive = X[i * d] + X[i * d + 1] * X[i * d + 2] > 0.0;
    problem.linear.push_back(is_positive ? -1.0 : 1.0);
    problem.lower.push_back(is_positive ? 0.0 : -cost);
    problem.upper.push_back(is_positive ? cost : 0.0);
    problem.points.push_back(i);
  }
  settings.chunk = 200;
  const auto store =
      std::make_shared<KernelStore>(view_of(X, n, d), rbf(gamma), settings.threads, Simd::best);
  CHECK(form_of_rows(store->gram<float>(), store->value_cost()) == RowForm::coarse);
  CertifiedSolver solver(store, problem, {}, settings, Precision::automatic);
  Status status = Status::running;
  for (int rounds = 0; status == Status::running && rounds < 20000; ++rounds)
    status = solver.round();
  CHECK(status == Status::optimal);
  CHECK(!solver.changed_precision());
  check_claim(solver, *store, problem, settings.tolerance, settings.threads);
  std::vector<double> F;
  exact_gradient(problem, solver.beta(), store->gram<double>(), 1, nullptr, F);
  const double objective = certify(problem, solver.beta(), F).objective;
  CHECK_NEAR(solver.certificate().objective, objective, 2e-6 * objective);
  return {solver.beta(), solver.info()};
}

void coarse_rows(Index n, Index d, double cost, double gamma) {
  Stream random;
  const std::vector<double> X = cloud(n, d, random);
  SolverSettings settings;
  for (const double tolerance : {1e-3, 1e-6}) {
    settings.tolerance = tolerance;
    for (const double rows : {1.0, 0.3, 0.0}) {  // part of them that the budget holds
      const double row_bytes = 2.0 * static_cast<double>(n);
      settings.cache_bytes = 9e5 + rows * static_cast<double>(n) * row_bytes;
      settings.threads = 1;
      const Outcome one = solve_on_coarse_rows(X, n, d, cost, gamma, settings);
      if (tolerance == 1e-6) CHECK(one.info.renewals > 0);
      settings.threads = 3;
      const Outcome many = solve_on_coarse_rows(X, n, d, cost, gamma, settings);
      CHECK(many.beta == one.beta);
      CHECK(many.info.kernel_evaluations == one.info.kernel_evaluations);
    }
  }
}

// Noisy classes and a large C: hundreds of thousands of steps, in which the error of float32 rows
// grows beside the gap. It is found on the way, while the gap is still above the tolerance, and the
// run goes on from the exact F, on the same rows.
void refined_on_the_way(Index n, Index d, double cost, double gamma) {
  Stream random;
  const std::vector<double> X = cloud(n, d, random);
  DualProblem problem;
  for (Index i = 0; i < n; ++i) {
    const bool is_positive = X[i * d] + centred(random) > 0.0;
    problem.linear.push_back(is_positive ? -1.0 : 1.0);
    problem.lower.push_back(is_positive ? 0.0 : -cost);
    problem.upper.push_back(is_positive ? cost : 0.0);
    problem.points.push_back(i);
  }
  SolverSettings settings;
  settings.threads = 2;
  const auto store =
      std::make_shared<KernelStore>(view_of(X, n, d), rbf(gamma), settings.threads, Simd::best);
  CertifiedSolver solver(store, problem, {}, settings, Precision::automatic);
  Status status = Status::running;
  Index on_the_way = 0;
  for (int rounds = 0; status == Status::running && rounds < 20000; ++rounds) {
    const Index before = solver.refinements();
    status = solver.round();
    const bool is_above = solver.info().gap > settings.tolerance;
    on_the_way += is_above ? solver.refinements() - before : 0;
  }
  CHECK(status == Status::optimal);
  CHECK(on_the_way > 0);
  CHECK(!solver.changed_precision());
  check_claim(solver, *store, problem, settings.tolerance, settings.threads);
}

}  // namespace

int main() {
  for (const Index d : {29, 30, 60, 140}) far_start(700, d, 0.0, 1);
  far_start(1300, 60, 0.0, 2);
  far_start(1300, 60, 2e6, 2);
  coarse_rows(2000, 45, 10.0, 0.02);
  coarse_rows(2000, 60, 1.0, 0.01);
  coarse_rows(1200, 41, 1e4, 1e-4);
  refined_on_the_way(1500, 3, 1e4, 0.2);
  return kfu_test::report("certified solver");
}

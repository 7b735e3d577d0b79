// Single-machine multiclass SVMs: a row's optimum is one, and every chunk, precision and layout
// reaches one certified objective.
#include <algorithm>
#include <cmath>
#include <vector>

#include "check.h"
#include "kfu/multiclass_dual.h"
#include "kfu/multiclass_row.h"

namespace {

using namespace kfu;
using kfu_test::Stream;

const MulticlassKind kKinds[] = {MulticlassKind::crammer_singer, MulticlassKind::weston_watkins};

// After a row is solved it sums to zero, keeps its bounds, and violates nothing.
void a_solved_row_meets_its_conditions() {
  Stream random;
  for (const MulticlassKind kind : kKinds)
    for (int trial = 0; trial < 2000; ++trial) {
      const Index K = 2 + trial % 9, label = trial % K;
      const double cost = 0.1 + 3.0 * random.next(), curvature = 0.01 + 5.0 * random.next();
      std::vector<double> B(K, 0.0), G(K), solved(K);
      RowProblem problem(kind, K);
      for (int step = 0; step < 3; ++step) {
        for (double& g : G) g = 8.0 * random.next() - 4.0;
        if (step == 1) std::fill(G.begin(), G.end(), 0.5);  // ties
        problem.solve({label, cost, B.data(), G.data()}, curvature, solved.data());
        double sum = 0.0;
        for (Index k = 0; k < K; ++k) {
          G[k] += curvature * (solved[k] - B[k]);
          sum += solved[k];
          if (k != label) CHECK(solved[k] <= 0.0);
          if (k != label && kind == MulticlassKind::weston_watkins) CHECK(solved[k] >= -cost);
        }
        if (kind == MulticlassKind::crammer_singer) CHECK(solved[label] <= cost);
        CHECK_NEAR(sum, 0.0, 1e-12);
        B = solved;
        const MulticlassRow row{label, cost, B.data(), G.data()};
        CHECK_NEAR(problem.violation(row), 0.0, 1e-10);
        CHECK_NEAR(problem.duality_gap(row), 0.0, 1e-10);
      }
    }
}

struct Toy {
  Index n, d;
  std::vector<double> x;
  MulticlassProblem problem;

  DataView view() const {
    DataView data;
    data.n = n;
    data.d = d;
    data.values = x.data();
    data.ld = d;
    return data;
  }
};

Toy make_toy(MulticlassKind kind, bool has_bias) {
  Stream random;
  Toy toy{90, 3, {}, {}};
  toy.problem.kind = kind;
  toy.problem.n_classes = 4;
  toy.problem.has_bias = has_bias;
  for (Index i = 0; i < toy.n; ++i) {
    for (Index j = 0; j < toy.d; ++j) toy.x.push_back(4.0 * random.next() - 2.0);
    if (i % 7 == 6) std::copy_n(toy.x.end() - 2 * toy.d, toy.d, toy.x.end() - toy.d);
    const double angle = std::atan2(toy.x[i * toy.d], toy.x[i * toy.d + 1]) + random.next();
    toy.problem.labels.push_back(static_cast<Index>(std::floor(angle + 8.0)) % 4);
    toy.problem.costs.push_back(static_cast<double>(i % 4));
  }
  return toy;
}

Certificate run(const Toy& toy, const char* kernel_name, Index chunk,
                MulticlassSolver::Precision precision) {
  Kernel kernel;
  Leaf leaf;
  leaf.kind = kernel_kind(kernel_name);
  kernel.terms.push_back({1.0, {leaf}});
  SolverSettings settings;
  settings.tolerance = 1e-6;
  settings.chunk = chunk;
  settings.threads = 2;
  MulticlassSolver solver(toy.view(), kernel, toy.problem, {}, {}, settings, precision);
  Status status = Status::running;
  for (int guard = 0; status == Status::running && guard < 100000; ++guard) status = solver.round();
  CHECK(status == Status::optimal);
  MulticlassSolver again(toy.view(), kernel, toy.problem, solver.B(), solver.bias(), settings,
                         precision);
  CHECK_NEAR(again.certificate().objective, solver.certificate().objective, 1e-9);
  return solver.certificate();
}

void every_way_reaches_one_objective() {
  for (const MulticlassKind kind : kKinds)
    for (const bool has_bias : {false, true})
      for (const char* kernel : {"rbf", "linear"}) {
        const Toy toy = make_toy(kind, has_bias);
        const Certificate whole = run(toy, kernel, 0, MulticlassSolver::Precision::automatic);
        CHECK(whole.kkt_gap <= 1e-6);
        CHECK(whole.n_usv > 0 && whole.n_usv <= whole.n_sv);
        for (const Index chunk : {Index(2), Index(33), Index(90)}) {
          const Certificate c = run(toy, kernel, chunk, MulticlassSolver::Precision::float64);
          CHECK_NEAR(c.objective, whole.objective, 1e-4);
          CHECK(c.duality_gap <= 1e-3);
        }
      }
}

}  // namespace

int main() {
  a_solved_row_meets_its_conditions();
  every_way_reaches_one_objective();
  return kfu_test::report("multiclass dual");
}

// Deferred columns: stages keep their order, and a solver that defers has the same answer, bit for
// bit, with any number of threads, and that of one which does not, within the tolerance.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "check.h"
#include "kfu/certificate.h"
#include "kfu/column_work.h"
#include "kfu/dual_solver.h"
#include "kfu/exact_gradient.h"

namespace {

using namespace kfu;
using kfu_test::Stream;

// Every column notes who came by: its number is to be that of the stage.
class Note final : public ColumnWork {
 public:
  Note(std::vector<int>& columns, int number, Index width)
      : columns_(columns), number_(number), width_(width) {}
  Index width(Index) const override { return width_; }
  void run(Index first, Index last, int) override {
    for (Index k = first; k < last; ++k) {
      if (columns_[k] != number_ - 1) ++wrong_;
      columns_[k] = number_;
    }
  }
  int wrong() const { return wrong_; }

 private:
  std::vector<int>& columns_;
  int number_;
  Index width_;
  std::atomic<int> wrong_{0};
};

void stages_are_done_in_order() {
  for (const int threads : {1, 2, 4}) {
    std::vector<int> columns(1000, 0);
    std::vector<std::shared_ptr<Note>> notes;
    StagedColumns work(70, 930);
    for (int number = 1; number <= 5; ++number) {
      notes.push_back(std::make_shared<Note>(columns, number, 16 * number));
      work.add(notes.back(), 0, 2000);  // cut to the range
    }
    work.add(std::make_shared<Note>(columns, 9, 16), 0, 70);  // nothing of it is in the range
    run_by_all(work, threads);
    for (const auto& note : notes) CHECK(note->wrong() == 0);
    for (Index k = 0; k < 1000; ++k) CHECK(columns[k] == (k >= 70 && k < 930 ? 5 : 0));
  }
}

void one_who_is_stopped_leaves_the_rest() {
  std::vector<int> columns(100, 0);
  StagedColumns work(0, 100);
  work.add(std::make_shared<Note>(columns, 1, 10), 0, 100);
  const std::atomic<bool> stop{true};
  work.work(0, &stop);
  CHECK(std::count(columns.begin(), columns.end(), 0) == 100);
  work.work(0);
  CHECK(std::count(columns.begin(), columns.end(), 1) == 100);
}

struct Toy {
  std::vector<double> X;
  DualProblem problem;
  Index d;

  DataView view() const {
    DataView data;
    data.n = problem.size();
    data.d = d;
    data.values = X.data();
    data.ld = d;
    return data;
  }
};

// Noisy labels in an order that is sorted by class, so that halves of it would differ. Of `few`
// features, the others nearly constant, variables are left out and come back.
Toy make_toy(Index n, double cost, bool equality, Index few = 12) {
  Stream random;
  Toy toy;
  toy.d = 12;
  for (Index i = 0; i < n; ++i) {
    const double label = i < n / 3 ? 1.0 : -1.0;
    for (Index k = 0; k < toy.d; ++k)
      toy.X.push_back((2.0 * random.next() - 1.0) * (k < few ? 1.0 : 0.05) +
                      (k == 0 ? 0.4 * label : 0.0));
    toy.problem.linear.push_back(-label);
    toy.problem.lower.push_back(label > 0 ? 0.0 : -cost);
    toy.problem.upper.push_back(label > 0 ? cost : 0.0);
    toy.problem.points.push_back(i);
  }
  toy.problem.has_equality = equality;
  return toy;
}

Kernel rbf(double gamma) {
  Kernel kernel;
  kernel.terms.resize(1);
  kernel.terms[0].leaves.resize(1);
  kernel.terms[0].leaves[0].kind = kernel_kind("rbf");
  kernel.terms[0].leaves[0].gamma = gamma;
  return kernel;
}

struct Answer {
  std::vector<double> beta, gradient;
  Info info;
  Certificate certificate;
};

template <class T>
Answer solve(const Toy& toy, const SolverSettings& settings) {
  const auto gram = make_gram<T>(toy.view(), rbf(0.3), settings.threads, Simd::best);
  const std::vector<double> zeros(static_cast<std::size_t>(toy.problem.size()), 0.0);
  DualSolver<T> solver(*gram, toy.problem, zeros, nullptr, settings, nullptr);
  Status status = Status::running;
  for (int guard = 0; status == Status::running && guard < 20000; ++guard) status = solver.round();
  CHECK(status == Status::optimal);
  Answer answer{solver.beta(), solver.gradient(), solver.info(), {}};
  double moved = 0.0;
  for (const double beta : answer.beta) moved += std::fabs(beta);
  const std::vector<double> rounding = solver.rounding_errors(moved);
  // By values of the rows' precision: what F is off by is rounding, as the bounds say, and nothing
  // at the support once it has been renewed.
  const Index n = toy.problem.size();
  std::vector<double> sums = toy.problem.linear;
  const std::unique_ptr<ColumnSet> columns = gram->make_columns(n);
  columns->assign(0, toy.problem.points.data(), n);
  gram->accumulate(toy.problem.points.data(), answer.beta.data(), n, 1, *columns, 0, n, sums.data(),
                   n, {});
  const double least = *std::min_element(rounding.begin(), rounding.end());
  for (Index k = 0; k < n && !answer.gradient.empty(); ++k)
    CHECK_NEAR(answer.gradient[k], sums[k], 1e-10 * moved + rounding[k]);
  solver.renew();
  const std::vector<double> renewed = solver.gradient(), left = solver.rounding_errors(moved);
  const double none = *std::min_element(left.begin(), left.end());
  CHECK(none <= least);
  for (Index k = 0; k < n && !renewed.empty(); ++k) {
    CHECK(answer.beta[k] == 0.0 || left[k] == none);
    CHECK_NEAR(renewed[k], sums[k], 1e-10 * moved + left[k]);
  }
  const auto exact = make_gram<double>(toy.view(), rbf(0.3), 1, Simd::best);
  std::vector<double> F;
  exact_gradient(toy.problem, answer.beta, *exact, 1, nullptr, F);
  answer.certificate = certify(toy.problem, answer.beta, F);
  return answer;
}

template <class T>
void threads_do_not_change_a_bit(double cost, bool equality, Index few = 12) {
  Toy toy = make_toy(1500, cost, equality, few);
  SolverSettings settings;
  if (few < 12) settings.tolerance = 1e-5;  // looks at all variables that find violators
  settings.chunk = 100;
  settings.value_cost = 1.0;  // cheap: nothing is deferred
  const Answer plain = solve<T>(toy, settings);
  CHECK(plain.info.overlapped_rounds == 0);
  const double square = 100.0 * 132.0 * sizeof(T);
  struct Rows {
    double kept;        // none, some, all
    double value_cost;  // dear values: others help with the block, which is gathered from rows
  };
  for (const Rows rows : {Rows{0.0, 60.0}, Rows{30.0, 60.0}, Rows{1e4, 60.0}, Rows{1e4, 250.0}})
    for (const bool shrinking : {false, true}) {
      settings.value_cost = rows.value_cost;
      settings.cache_bytes = square + rows.kept * 1500.0 * sizeof(T);
      settings.shrinking = shrinking;
      settings.threads = 1;
      const Answer one = solve<T>(toy, settings);
      CHECK(one.info.overlapped_rounds > 2);
      CHECK(one.certificate.kkt_gap < 2e-3);
      CHECK_NEAR(one.certificate.objective, plain.certificate.objective,
                 1e-4 * plain.certificate.objective);
      for (const int threads : {2, 3, 4}) {
        settings.threads = threads;
        const Answer many = solve<T>(toy, settings);
        CHECK(many.beta == one.beta && many.gradient == one.gradient);
        CHECK(many.info.kernel_evaluations == one.info.kernel_evaluations);
        CHECK(many.info.overlapped_rounds == one.info.overlapped_rounds);
      }
    }
}

}  // namespace

int main() {
  stages_are_done_in_order();
  one_who_is_stopped_leaves_the_rest();
  threads_do_not_change_a_bit<float>(1.0, true);
  threads_do_not_change_a_bit<float>(1000.0, true);
  threads_do_not_change_a_bit<float>(1.0, false);
  threads_do_not_change_a_bit<float>(10.0, true, 3);
  threads_do_not_change_a_bit<float>(300.0, true, 2);
  threads_do_not_change_a_bit<double>(10.0, true);
  return kfu_test::report("deferral");
}

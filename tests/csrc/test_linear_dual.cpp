// Passes over rows, coordinate descent and the proximal step of the linear solver, scalar by
// scalar.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "check.h"
#include "kfu/certificate.h"
#include "kfu/linear_dual.h"
#include "kfu/linear_normal.h"
#include "kfu/linear_proximal.h"
#include "kfu/linear_rows.h"

namespace {

using namespace kfu;

// The same matrix dense and as CSR, in either precision; zeros are left out of the CSR.
struct Matrix {
  Index n, d;
  std::vector<double> values;
  std::vector<float> floats;
  std::vector<double> entries;
  std::vector<Index> indptr{0};
  std::vector<std::int32_t> indices;

  Matrix(Index rows, Index features) : n(rows), d(features) {
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < d; ++j) {
        const bool is_zero = (i * 7 + j * 5) % 3 == 0;
        const float value = is_zero ? 0.0f : static_cast<float>(std::sin(1.0 + 3.0 * i + j * j));
        values.push_back(value);
        floats.push_back(value);
        if (is_zero) continue;
        entries.push_back(value);
        indices.push_back(static_cast<std::int32_t>(j));
      }
      indptr.push_back(static_cast<Index>(entries.size()));
    }
  }

  double at(Index i, Index j) const { return values[i * d + j]; }

  std::vector<DataView> views() const {
    DataView dense;
    dense.n = n, dense.d = d, dense.ld = d, dense.values = values.data();
    DataView single = dense;
    single.values = floats.data(), single.is_double = false;
    DataView csr = dense;
    csr.is_csr = true, csr.values = entries.data();
    csr.indptr = indptr.data(), csr.indices = indices.data();
    return {dense, single, csr};
  }
};

std::vector<Index> all(Index n) {
  std::vector<Index> list(static_cast<std::size_t>(n));
  std::iota(list.begin(), list.end(), Index{0});
  return list;
}

void passes_agree_with_loops_written_out() {
  const Matrix X(5000, 7);
  std::vector<double> w(7), coef(5000), mean(7, 0.0);
  for (Index j = 0; j < 7; ++j) w[j] = 0.3 * j - 1.0;
  for (Index i = 0; i < 5000; ++i) coef[i] = i % 4 == 0 ? 0.0 : 1.0 / (1.0 + i);
  double total = 0.0;
  for (Index i = 0; i < 5000; ++i) {
    total += coef[i];
    for (Index j = 0; j < 7; ++j) mean[j] += coef[i] * X.at(i, j);
  }
  for (double& m : mean) m /= total;
  for (const DataView& view : X.views()) {
    const LinearRows one(view, all(5000), 1), two(view, all(5000), 2);
    std::vector<double> out(5000), sum(7), again(7), H(49, 0.0), squares(5000);
    one.apply(nullptr, 5000, w.data(), out.data());
    one.add(nullptr, 5000, coef.data(), sum.data());
    two.add(nullptr, 5000, coef.data(), again.data());
    one.squares(squares.data());
    const std::vector<Index> which = all(5000);
    one.add_outer(which.data(), 5000, coef.data(), mean.data(), H.data());
    for (Index i = 0; i < 5000; i += 617) {
      double dot = 0.0, square = 0.0;
      for (Index j = 0; j < 7; ++j) dot += X.at(i, j) * w[j], square += X.at(i, j) * X.at(i, j);
      CHECK_NEAR(out[i], dot, 1e-12);
      CHECK_NEAR(squares[i], square, 1e-12);
    }
    for (Index j = 0; j < 7; ++j) {
      CHECK(sum[j] == again[j]);
      CHECK_NEAR(sum[j], total * mean[j], 1e-12);
      for (Index k = 0; k <= j; ++k) {
        double expected = 0.0;
        for (Index i = 0; i < 5000; ++i)
          expected += coef[i] * (X.at(i, j) - mean[j]) * (X.at(i, k) - mean[k]);
        CHECK_NEAR(H[j * 7 + k], expected, 1e-11);
      }
    }
  }
}

DualProblem classifier(Index n, bool has_equality) {
  DualProblem problem;
  problem.points = all(n);
  problem.has_equality = has_equality;
  for (Index i = 0; i < n; ++i) {
    const bool positive = i % 2 == 0;
    problem.linear.push_back(positive ? -1.0 : 1.0);
    problem.lower.push_back(positive ? 0.0 : -0.5);
    problem.upper.push_back(positive ? 0.5 : 0.0);
    problem.ridge.push_back(0.2);
  }
  problem.upper[4] = problem.lower[4];  // weight 0
  return problem;
}

void descent_reaches_the_conditions(bool has_equality, bool shrinking) {
  const Matrix X(60, 6);
  const DualProblem problem = classifier(60, has_equality);
  double first_objective = 0.0;
  for (const DataView& view : X.views()) {
    const LinearRows rows(view, problem.points, 1);
    LinearDual descent(rows, problem, std::vector<double>(60, 0.0), 0.1, shrinking);
    for (int round = 0; round < 20; ++round) {
      Epoch epoch;
      for (int k = 0; k < 200; ++k) epoch = descent.descend(1000000);
      CHECK(epoch.finished);
      descent.unshrink();
    }
    const std::vector<double> beta = descent.beta();
    std::vector<double> w(6), F(60);
    rows.add(nullptr, 60, beta.data(), w.data());
    rows.apply(nullptr, 60, w.data(), F.data());
    for (Index k = 0; k < 60; ++k) F[k] += 0.2 * beta[k] + problem.linear[k];
    const Certificate c = certify(problem, beta, F);
    CHECK_NEAR(c.kkt_gap, 0.0, 1e-9);
    CHECK(c.objective > 1.0);
    CHECK(beta[4] == 0.0);
    if (has_equality) CHECK_NEAR(descent.imbalance(), 0.0, 1e-9);
    CHECK((descent.shrinks() > 0) == shrinking);
    if (first_objective == 0.0) first_objective = c.objective;
    CHECK_NEAR(c.objective, first_objective, 1e-9);
  }
}

void an_epoch_stops_at_the_steps_allowed() {
  const Matrix X(60, 6);
  const DualProblem problem = classifier(60, true);
  const LinearRows rows(X.views()[0], problem.points, 1);
  LinearDual descent(rows, problem, std::vector<double>(60, 0.0), 0.1, true);
  const Epoch epoch = descent.descend(7);
  CHECK(epoch.steps == 7);
  CHECK(!epoch.finished);
  const std::vector<double> beta = descent.beta();
  CHECK(std::count_if(beta.begin(), beta.end(), [](double b) { return b != 0.0; }) == 7);
}

void proximal_points_lie_where_the_formula_says() {
  const std::vector<double> centre{0.5, 0.5, 0.5, 0.1, -0.4}, weight{1.0, 1.0, 1.0, 2.0, 2.0};
  const std::vector<double> lower(5, -1.0), upper(5, 1.0), kink{0.0, 0.0, 0.0, 0.2, 0.2};
  const std::vector<double> score{0.2, -3.0, 3.0, 0.1, 0.1}, direction{1.0, 1.0, 1.0, 1.0, -1.0};
  const ProximalArrays arrays{5,           centre.data(), weight.data(), lower.data(), upper.data(),
                              kink.data(), score.data()};
  std::vector<double> beta(5);
  std::vector<Index> inside(5);
  const Index count = proximal_point(arrays, beta.data(), inside.data());
  const std::vector<double> expected{0.3, 1.0, -1.0, 0.0, -0.2};
  for (Index k = 0; k < 5; ++k) CHECK_NEAR(beta[k], expected[k], 1e-15);
  CHECK(count == 2 && inside[0] == 0 && inside[1] == 4);
  const ProximalSlope slope = proximal_slope(arrays, direction.data(), 0.0, 1);
  CHECK_NEAR(slope.first, -0.2 + 0.5 - 1.5 - 0.1 - 0.2, 1e-15);
  CHECK_NEAR(slope.second, 3.0, 1e-15);
}

// (A Aᵀ + ridge I) P and (AᵀA + ridge I) P with A_ij = root_i (x_ij − mean_j), sum by sum.
void normal_products_agree_with_sums_written_out(Index t) {
  const Index n = 9, d = 5;
  const double ridge = 0.3;
  const Matrix X(n, d);
  std::vector<double> root(n), mean(d), A(n * d), P(n * t), V(d * t), out(n * t), back(d * t);
  for (Index i = 0; i < n; ++i) root[i] = 1.0 + 0.1 * i;
  for (Index j = 0; j < d; ++j) mean[j] = 0.2 * j - 0.3;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < d; ++j) A[i * d + j] = root[i] * (X.at(i, j) - mean[j]);
  for (Index k = 0; k < n * t; ++k) P[k] = std::cos(1.0 + k);
  for (Index k = 0; k < d * t; ++k) V[k] = std::cos(2.0 + k);
  const NormalProducts products(X.views()[2], root.data(), mean.data(), ridge);
  products.of_rows(P.data(), t, out.data());
  products.of_features(V.data(), t, back.data());
  for (Index c = 0; c < t; ++c) {
    std::vector<double> AtP(d, 0.0), AV(n, 0.0);
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < d; ++j) {
        AtP[j] += A[i * d + j] * P[i * t + c];
        AV[i] += A[i * d + j] * V[j * t + c];
      }
    for (Index i = 0; i < n; ++i) {
      double sum = ridge * P[i * t + c];
      for (Index j = 0; j < d; ++j) sum += A[i * d + j] * AtP[j];
      CHECK_NEAR(out[i * t + c], sum, 1e-12);
    }
    for (Index j = 0; j < d; ++j) {
      double sum = ridge * V[j * t + c];
      for (Index i = 0; i < n; ++i) sum += A[i * d + j] * AV[i];
      CHECK_NEAR(back[j * t + c], sum, 1e-12);
    }
  }
}

}  // namespace

int main() {
  for (Index t = 1; t <= 6; ++t) normal_products_agree_with_sums_written_out(t);
  passes_agree_with_loops_written_out();
  for (const bool has_equality : {true, false})
    for (const bool shrinking : {true, false})
      descent_reaches_the_conditions(has_equality, shrinking);
  an_epoch_stops_at_the_steps_allowed();
  proximal_points_lie_where_the_formula_says();
  return kfu_test::report("linear_dual");
}

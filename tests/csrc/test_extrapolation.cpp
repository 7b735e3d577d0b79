// Extrapolation: the point it proposes is the best that the snapshots span, inside the boxes, and F
// follows it.
#include <cmath>
#include <vector>

#include "check.h"
#include "kfu/extrapolation.h"

namespace {

using namespace kfu;

constexpr Index n = 40;

// A small pseudo-random sequence in [−1, 1).
struct Noise {
  unsigned state = 12345;
  double operator()() {
    state = state * 1664525u + 1013904223u;
    return static_cast<double>(state >> 8) / 8388608.0 - 1.0;
  }
};

struct Descent {
  std::vector<double> K, linear, beta, lower, upper, kink, F;
  std::vector<char> group;
  bool has_equality = true;
  int n_groups = 1;

  explicit Descent(double cost) : kink(n, 0.0), group(n, 0) {
    Noise noise;
    std::vector<double> x(n);
    for (double& value : x) value = noise();
    K.resize(n * n);
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j)
        K[i * n + j] = std::exp(-0.5 * (x[i] - x[j]) * (x[i] - x[j])) + (i == j ? 0.05 : 0.0);
    for (Index k = 0; k < n; ++k) linear.push_back(k % 2 ? 1.0 : -1.0);
    beta.assign(n, 0.0);
    lower.assign(n, -cost);
    upper.assign(n, cost);
    F = gradient();
  }

  std::vector<double> gradient() const {
    std::vector<double> out = linear;
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) out[i] += K[i * n + j] * beta[j];
    return out;
  }

  double objective() const {
    double value = 0.0;
    for (Index k = 0; k < n; ++k)
      value += 0.5 * beta[k] * (F[k] + linear[k]) + kink[k] * std::fabs(beta[k]);
    return value;
  }

  double sum(int of) const {
    double total = 0.0;
    for (Index k = 0; k < n; ++k) total += group[k] == of ? beta[k] : 0.0;
    return total;
  }

  // One pair step for each neighbour of the same group.
  void sweep() {
    for (Index i = 0; i < n; ++i)
      for (Index j = i + 1; j < n && j < i + 4; ++j) {
        if (group[i] != group[j]) continue;
        const double eta = K[i * n + i] + K[j * n + j] - 2.0 * K[i * n + j];
        double t = (F[j] - F[i]) / eta;
        t = std::fmin(t, std::fmin(upper[i] - beta[i], beta[j] - lower[j]));
        t = std::fmax(t, std::fmax(lower[i] - beta[i], beta[j] - upper[j]));
        beta[i] += t;
        beta[j] -= t;
        for (Index k = 0; k < n; ++k) F[k] += t * (K[i * n + k] - K[j * n + k]);
      }
  }

  DescentView<double> view() const {
    return {n,        beta.data(), lower.data(), upper.data(), kink.data(), group.data(),
            F.data(), n_groups,    has_equality};
  }

  void take(const Extrapolation<double>& extrapolation) {
    extrapolation.advance(F.data());
    beta = extrapolation.target();
    for (std::size_t s = 0; s < extrapolation.stopped().size(); ++s)
      for (Index k = 0; k < n; ++k)
        F[k] += extrapolation.stopped_delta()[s] * K[extrapolation.stopped()[s] * n + k];
  }
};

void is_the_best_of_its_span() {
  Descent descent(1e6);  // nothing stops
  Extrapolation<double> extrapolation(0.5);
  std::vector<std::vector<double>> states;
  CHECK(!extrapolation.propose(descent.view(), n));  // nothing to go by
  for (int s = 0; s < 3; ++s) {
    states.push_back(descent.beta);
    extrapolation.remember(descent.view());
    descent.sweep();
  }
  const std::vector<double> now = descent.beta;
  const double before = descent.objective();
  const std::vector<double> old_F = descent.F;
  CHECK(extrapolation.propose(descent.view(), n));
  descent.take(extrapolation);
  CHECK(descent.objective() < before);
  CHECK_NEAR(objective_change(descent.view(), now, old_F), descent.objective() - before, 1e-9);
  const std::vector<double> exact = descent.gradient();
  for (Index k = 0; k < n; ++k) CHECK_NEAR(descent.F[k], exact[k], 1e-10);
  for (const std::vector<double>& state : states) {  // no slope is left along any of them
    double slope = 0.0, size = 0.0;
    for (Index k = 0; k < n; ++k) {
      slope += (now[k] - state[k]) * descent.F[k];
      size += std::fabs((now[k] - state[k]) * old_F[k]);
    }
    CHECK_NEAR(slope, 0.0, 1e-6 * size);
  }
  CHECK_NEAR(descent.sum(0), 0.0, 1e-12);
}

void stops_at_bounds_and_keeps_the_sums(int n_groups) {
  Descent descent(1.5);
  descent.n_groups = n_groups;
  for (Index k = 0; k < n && n_groups > 1; ++k) descent.group[k] = static_cast<char>(k / 20);
  Extrapolation<double> extrapolation(0.5);
  int n_stopped = 0, n_taken = 0;
  double amplified = 1.0;
  for (int s = 0; s < 30; ++s) {
    extrapolation.remember(descent.view());
    descent.sweep();
    if (!extrapolation.propose(descent.view(), n)) continue;
    n_stopped += static_cast<int>(extrapolation.stopped().size());
    ++n_taken;
    CHECK(!extrapolation.propose(descent.view(), -1));  // more stop than are allowed
    CHECK(extrapolation.propose(descent.view(), n));
    descent.take(extrapolation);
    for (Index k = 0; k < n; ++k)
      CHECK(descent.beta[k] >= descent.lower[k] && descent.beta[k] <= descent.upper[k]);
    const std::vector<double> exact = descent.gradient();
    amplified *= extrapolation.amplification();  // bounds what has become of rounding errors
    for (Index k = 0; k < n; ++k) CHECK_NEAR(descent.F[k], exact[k], 1e-13 * amplified);
    for (int g = 0; g < n_groups; ++g) CHECK_NEAR(descent.sum(g), 0.0, 1e-12);
  }
  CHECK(n_taken > 0);
  CHECK(n_stopped > n_taken);  // more than those that balance the sums
}

void stays_on_its_side_of_a_kink() {
  Descent descent(20.0);
  descent.kink.assign(n, 0.3);
  Extrapolation<double> extrapolation(0.5);
  for (int s = 0; s < 3; ++s) {
    extrapolation.remember(descent.view());
    descent.sweep();
  }
  descent.beta[3] = 0.0;  // as if it had come to rest there
  descent.F = descent.gradient();
  CHECK(extrapolation.propose(descent.view(), n));
  CHECK(extrapolation.target()[3] == 0.0);
  for (Index k = 0; k < n; ++k) CHECK(extrapolation.target()[k] * descent.beta[k] >= 0.0);
}

// Differences that are rounding, or none at all, are no directions.
void rounding_is_not_followed() {
  Descent descent(1e6);
  Extrapolation<double> extrapolation(0.5);
  extrapolation.remember(descent.view());
  CHECK(!extrapolation.propose(descent.view(), n));
  descent.beta[0] += 1e-16;
  descent.beta[1] -= 1e-16;
  descent.F = descent.gradient();
  CHECK(!extrapolation.propose(descent.view(), n));
  descent.sweep();
  CHECK(extrapolation.propose(descent.view(), n));
  extrapolation.forget();
  CHECK(!extrapolation.propose(descent.view(), n));
}

void comes_round_after_part_of_a_sweep() {
  Extrapolation<double> extrapolation(0.5);
  CHECK(!extrapolation.is_due(90, 100));  // too few to be worth it
  CHECK(extrapolation.is_due(10, 100));
  extrapolation.forget();
  CHECK(!extrapolation.is_due(400, 1000));
  CHECK(extrapolation.is_due(100, 1000));
}

}  // namespace

int main() {
  is_the_best_of_its_span();
  stops_at_bounds_and_keeps_the_sums(1);
  stops_at_bounds_and_keeps_the_sums(2);
  stays_on_its_side_of_a_kink();
  rounding_is_not_followed();
  comes_round_after_part_of_a_sweep();
  return kfu_test::report("extrapolation");
}

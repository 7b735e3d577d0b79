#include "kfu/certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Index kColumnsAtOnce = 4096;  // bounds the packed copy of the points

struct SupportTerms {
  std::vector<Index> points;
  std::vector<double> coef;
};

SupportTerms support_terms(const DualProblem& problem, const std::vector<double>& beta) {
  SupportTerms terms;
  for (Index k = 0; k < problem.size(); ++k)
    if (beta[k] != 0.0) {
      terms.points.push_back(problem.points[k]);
      terms.coef.push_back(beta[k]);
    }
  return terms;
}

void add_separable_part(const DualProblem& problem, const std::vector<double>& beta,
                        std::vector<double>& F) {
  for (Index k = 0; k < problem.size(); ++k) {
    F[k] += problem.linear[k];
    if (!problem.ridge.empty()) F[k] += problem.ridge[k] * beta[k];
  }
}

}  // namespace

Index gradient_from_scratch(const DualProblem& problem, const std::vector<double>& beta,
                            const Gram<double>& gram, std::vector<double>& F_out) {
  const Index n = problem.size();
  const SupportTerms terms = support_terms(problem, beta);
  F_out.assign(static_cast<std::size_t>(n), 0.0);
  const Index n_terms = static_cast<Index>(terms.points.size());
  if (n_terms > 0) {
    const std::unique_ptr<ColumnSet> columns = gram.make_columns(std::min(n, kColumnsAtOnce));
    for (Index first = 0; first < n; first += kColumnsAtOnce) {
      const Index count = std::min(kColumnsAtOnce, n - first);
      columns->truncate(0);
      columns->assign(0, problem.points.data() + first, count);
      gram.accumulate(terms.points.data(), terms.coef.data(), n_terms, 1, *columns, 0, count,
                      F_out.data() + first, count, nullptr);
    }
  }
  add_separable_part(problem, beta, F_out);
  return n_terms * n;
}

void gradient_from_scratch(const DualProblem& problem, const std::vector<double>& beta,
                           const DataView& data, int threads, std::vector<double>& F_out) {
  const SupportTerms terms = support_terms(problem, beta);
  F_out.assign(problem.linear.size(), 0.0);
  LinearMap map(data, threads);
  map.add(terms.points.data(), terms.coef.data(), static_cast<Index>(terms.points.size()));
  map.apply(problem.points.data(), problem.size(), F_out.data());
  add_separable_part(problem, beta, F_out);
}

Certificate certify(const DualProblem& problem, const std::vector<double>& beta,
                    const std::vector<double>& F) {
  Certificate c;
  double up = kInf, low = -kInf, sum = 0.0;
  for (Index k = 0; k < problem.size(); ++k) {
    const bool may_increase = beta[k]<problem.upper[k], may_decrease = beta[k]> problem.lower[k];
    if (may_increase) up = std::min(up, F[k]);
    if (may_decrease) low = std::max(low, F[k]);
    c.n_sv += beta[k] != 0.0;
    if (may_increase && may_decrease) {
      ++c.n_usv;
      sum += F[k];
    }
    c.objective -= 0.5 * beta[k] * (F[k] + problem.linear[k]);
  }
  double theta = 0.0;
  if (problem.has_equality) {
    c.kkt_gap = std::max(0.0, low - up);
    if (c.n_usv > 0)
      theta = sum / static_cast<double>(c.n_usv);
    else if (std::isfinite(up) && std::isfinite(low))
      theta = 0.5 * (up + low);
    else
      theta = std::isfinite(up) ? up : std::isfinite(low) ? low : 0.0;
    c.bias_low = -(std::isfinite(up) ? up : theta);
    c.bias_high = -(std::isfinite(low) ? low : theta);
    if (c.bias_low > c.bias_high) std::swap(c.bias_low, c.bias_high);
  } else {
    c.kkt_gap = std::max({0.0, -up, low});
  }
  double square = 0.0;
  for (Index k = 0; k < problem.size(); ++k) {
    const double excess = F[k] - theta;
    const bool may_increase = beta[k]<problem.upper[k], may_decrease = beta[k]> problem.lower[k];
    if (may_increase) c.kkt_violation = std::max(c.kkt_violation, -excess);
    if (may_decrease) c.kkt_violation = std::max(c.kkt_violation, excess);
    if (may_increase && may_decrease) square += excess * excess;
    // 0 · inf has no place here: a variable on a bound contributes nothing at that bound.
    if (excess > 0.0 && may_decrease) c.duality_gap += (beta[k] - problem.lower[k]) * excess;
    if (excess < 0.0 && may_increase) c.duality_gap += (beta[k] - problem.upper[k]) * excess;
  }
  c.bias = problem.has_equality ? -theta : 0.0;
  if (c.n_usv > 0 && problem.has_equality)
    c.bias_std = std::sqrt(square / static_cast<double>(c.n_usv));
  return c;
}

}  // namespace kfu

#include "kfu/exact_gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "kfu/linear_map.h"
#include "kfu/weighted_sums.h"

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
// Support up to which F is computed at all of it: a few milliseconds.
constexpr Index kSmallSupport = 3000;
constexpr double kObjectiveError = 2e-6;     // relative, that is put up with
constexpr Index kWorthTightening = 4000000;  // float64 values that smaller errors may save

// Variables with their points and β.
struct Members : WeightedPoints {
  std::vector<Index> variables;

  void add(const DualProblem& problem, const std::vector<double>& beta, Index k) {
    variables.push_back(k);
    WeightedPoints::add(problem.points[k], beta[k]);
  }
};

bool is_unbounded(const DualProblem& problem, const std::vector<double>& beta, Index k) {
  return kfu::is_unbounded(beta[k], problem.lower[k], problem.upper[k], problem.kink_of(k));
}

double separable_part(const DualProblem& problem, const std::vector<double>& beta, Index k) {
  return problem.linear[k] + (problem.ridge.empty() ? 0.0 : problem.ridge[k] * beta[k]);
}

// Which of `candidates` may matter to a certificate, given F at the `known` variables, which hold
// all unbounded ones. Without any of these the bias hangs on every variable, unless there is no
// equality.
std::vector<Index> relevant_variables(const DualProblem& problem, const std::vector<double>& beta,
                                      const std::vector<Index>& candidates,
                                      const std::vector<double>& values,
                                      const std::vector<double>& errors,
                                      const std::vector<Index>& known,
                                      const std::vector<double>& F) {
  struct Side {
    double up = kInf, low = -kInf, sum = 0.0;
    Index n_free = 0;
    double ceiling = 0.0, floor = 0.0;
  } sides[kMostGroups];
  for (const Index k : known) {
    Side& side = sides[problem.group_of(k)];
    const double up = up_slope(F[k], beta[k], problem.kink_of(k));
    const double low = low_slope(F[k], beta[k], problem.kink_of(k));
    if (beta[k] < problem.upper[k]) side.up = std::min(side.up, up);
    if (beta[k] > problem.lower[k]) side.low = std::max(side.low, low);
    if (is_unbounded(problem, beta, k)) side.sum += up, ++side.n_free;
  }
  for (int g = 0; g < problem.n_groups() && problem.has_equality; ++g) {
    Side& side = sides[g];
    if (side.n_free == 0) return candidates;
    // Beyond these a variable can neither be an end of the gap nor on the wrong side of θ.
    const double theta = side.sum / static_cast<double>(side.n_free);
    side.ceiling = std::max(side.low, theta);
    side.floor = std::min(side.up, theta);
  }
  std::vector<Index> found;
  for (const Index k : candidates) {
    const Side& side = sides[problem.group_of(k)];
    const double up = up_slope(values[k], beta[k], problem.kink_of(k)) - errors[k];
    const double low = low_slope(values[k], beta[k], problem.kink_of(k)) + errors[k];
    const bool up_matters = beta[k] < problem.upper[k] && !(up > side.ceiling);
    const bool low_matters = beta[k] > problem.lower[k] && !(low < side.floor);
    if (up_matters || low_matters) found.push_back(k);
  }
  return found;
}

// Whether approximate values at the bounded support would be felt in the objective.
bool spoils_objective(const DualProblem& problem, const std::vector<double>& beta,
                      const ApproximateGradient& approximate) {
  if (approximate.usual_error == 0.0) return false;
  double objective = 0.0, squares = 0.0;
  for (Index k = 0; k < problem.size(); ++k) {
    objective -= 0.5 * beta[k] * (approximate.values[k] + problem.linear[k]);
    objective -= problem.kink_of(k) * std::fabs(beta[k]);
    if (!is_unbounded(problem, beta, k)) squares += beta[k] * beta[k];
  }
  return 0.5 * approximate.usual_error * std::sqrt(squares) >
         kObjectiveError * std::fabs(objective);
}

}  // namespace

Index exact_gradient(const DualProblem& problem, const std::vector<double>& beta,
                     const Gram<double>& gram, int threads, ApproximateGradient* approximate,
                     std::vector<double>& F_out) {
  const Index n = problem.size();
  // Those whose F is wanted anyway come first: unbounded variables, and the rest of the support
  // unless it is large and an approximate F tells which of it matter.
  const Index n_support = n - std::count(beta.begin(), beta.end(), 0.0);
  const bool takes_all = approximate == nullptr || n_support <= kSmallSupport ||
                         spoils_objective(problem, beta, *approximate);
  Members support, first, rest;
  std::vector<Index> others;
  for (Index k = 0; k < n; ++k) {
    const bool is_support = beta[k] != 0.0;
    const bool is_first = is_unbounded(problem, beta, k) || (is_support && takes_all);
    if (is_support) support.add(problem, beta, k);
    if (is_first) {
      first.add(problem, beta, k);
    } else {
      others.push_back(k);
      if (is_support) rest.add(problem, beta, k);
    }
  }
  F_out.assign(static_cast<std::size_t>(n), 0.0);
  if (approximate != nullptr) F_out = approximate->values;

  std::vector<double> sums(static_cast<std::size_t>(first.size()), 0.0);
  Index values = symmetric_sums(first, gram, threads, sums);
  values += add_columns(rest, gram, first.points, sums);
  for (Index s = 0; s < first.size(); ++s) {
    const Index k = first.variables[s];
    F_out[k] = sums[s] + separable_part(problem, beta, k);
  }

  if (approximate != nullptr) {
    const std::vector<double>& values_of = approximate->values;
    others = relevant_variables(problem, beta, others, values_of, approximate->errors,
                                first.variables, F_out);
    if (approximate->tighten && static_cast<Index>(others.size()) * n_support > kWorthTightening) {
      approximate->tighten(others, approximate->errors);
      others = relevant_variables(problem, beta, others, values_of, approximate->errors,
                                  first.variables, F_out);
    }
  }
  std::vector<Index> points;
  for (const Index k : others) points.push_back(problem.points[k]);
  sums.assign(others.size(), 0.0);
  values += add_columns(support, gram, points, sums);
  for (std::size_t c = 0; c < others.size(); ++c)
    F_out[others[c]] = sums[c] + separable_part(problem, beta, others[c]);
  if (approximate != nullptr) {
    for (const Index k : first.variables) approximate->errors[k] = 0.0;
    for (const Index k : others) approximate->errors[k] = 0.0;
  }
  return values;
}

// With e_j the part of the error of K(j, k) that is j's, one sum is enough: of |β_j| e_j K(j, k).
// It bounds what k's own part is multiplied by, Σ |β_j| K(j, k), too: by the smallest e_j.
void tighten_errors(const DualProblem& problem, const std::vector<double>& beta,
                    const Gram<float>& gram, const ValueError& value_error,
                    const std::vector<double>& rounding, const std::vector<Index>& variables,
                    std::vector<double>& errors) {
  Members support;
  double least = kInf, worst = 0.0, total = 0.0;
  for (Index k = 0; k < problem.size(); ++k) {
    if (beta[k] == 0.0) continue;
    support.add(problem, beta, k);
    const double error = value_error.constant + value_error.by_point[problem.points[k]];
    total += std::fabs(beta[k]);
    support.coef.back() = std::fabs(beta[k]) * error;
    least = std::min(least, error);
    worst = std::max(worst, error);
  }
  std::vector<Index> points;
  for (const Index k : variables) points.push_back(problem.points[k]);
  std::vector<double> sums(variables.size(), 0.0);
  add_columns(support, gram, points, sums);
  for (std::size_t c = 0; c < variables.size(); ++c) {
    const double own = value_error.by_point[points[c]];
    const double mean = least > 0.0 ? 1.0 + own / least : kInf;  // of the error, in units of e_j
    double& known = errors[variables[c]];
    known = std::min(known, sum_error(worst + own, sums[c] * mean / (worst + own), total) +
                                rounding[variables[c]]);
  }
}

void exact_linear_gradient(const DualProblem& problem, const std::vector<double>& beta,
                           const DataView& data, int threads, std::vector<double>& F_out) {
  Members support;
  for (Index k = 0; k < problem.size(); ++k)
    if (beta[k] != 0.0) support.add(problem, beta, k);
  F_out.assign(problem.linear.size(), 0.0);
  LinearMap map(data, threads);
  map.add(support.points.data(), support.coef.data(), support.size());
  map.apply(problem.points.data(), problem.size(), F_out.data());
  for (Index k = 0; k < problem.size(); ++k) F_out[k] += separable_part(problem, beta, k);
}

}  // namespace kfu

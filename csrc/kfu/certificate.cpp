#include "kfu/certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

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

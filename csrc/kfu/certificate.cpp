#include "kfu/certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// What the variables of one group say of their threshold.
struct Side {
  double up = kInf, low = -kInf;  // the KKT interval
  double sum = 0.0;               // of the slopes of unbounded variables
  Index n_usv = 0;

  double threshold() const {
    if (n_usv > 0) return sum / static_cast<double>(n_usv);
    if (std::isfinite(up) && std::isfinite(low)) return 0.5 * (up + low);
    return std::isfinite(up) ? up : std::isfinite(low) ? low : 0.0;
  }
};

// φ(b) − min φ for φ(b) = ½ ridge b² + slope·b + kink|b| over [lower, upper]. Bounds may be
// infinite; then only a ridge makes the minimum finite when φ falls towards them.
double excess_of(double b, double slope, double ridge, double kink, double lower, double upper) {
  // The minimiser: 0 if the kink holds it there, else the stationary point or the bound.
  double best = std::clamp(0.0, lower, upper);
  if (slope + kink < 0.0 && upper > best)
    best = ridge > 0.0 ? std::min(upper, std::max(best, -(slope + kink) / ridge)) : upper;
  else if (slope - kink > 0.0 && lower < best)
    best = ridge > 0.0 ? std::max(lower, std::min(best, -(slope - kink) / ridge)) : lower;
  if (b == best) return 0.0;
  if (!std::isfinite(best)) return kInf;
  // As a product of the difference: φ(b) − φ(best) without cancellation of large terms.
  const double difference = b - best;
  double value = (0.5 * ridge * (b + best) + slope) * difference;
  value += kink * (std::fabs(b) - std::fabs(best));
  return std::max(0.0, value);
}

}  // namespace

Certificate certify(const DualProblem& problem, const std::vector<double>& beta,
                    const std::vector<double>& F) {
  Certificate c;
  Side sides[kMostGroups];
  for (Index k = 0; k < problem.size(); ++k) {
    const double kink = problem.kink_of(k);
    const double up = up_slope(F[k], beta[k], kink), low = low_slope(F[k], beta[k], kink);
    Side& side = sides[problem.group_of(k)];
    if (beta[k] < problem.upper[k]) side.up = std::min(side.up, up);
    if (beta[k] > problem.lower[k]) side.low = std::max(side.low, low);
    c.n_sv += beta[k] != 0.0;
    if (is_unbounded(beta[k], problem.lower[k], problem.upper[k], kink)) {
      ++c.n_usv;
      ++side.n_usv;
      side.sum += up;
    }
    c.objective -= 0.5 * beta[k] * (F[k] + problem.linear[k]) + kink * std::fabs(beta[k]);
  }
  const int n_groups = problem.n_groups();
  double theta[kMostGroups] = {};
  for (int g = 0; g < n_groups; ++g) {
    const Side& side = sides[g];
    if (!problem.has_equality) {
      c.kkt_gap = std::max({0.0, -side.up, side.low});
      continue;
    }
    theta[g] = side.threshold();
    c.kkt_gap = std::max(c.kkt_gap, side.low - side.up);
    c.bias -= theta[g] / n_groups;
    c.bias_low -= (std::isfinite(side.up) ? side.up : theta[g]) / n_groups;
    c.bias_high -= (std::isfinite(side.low) ? side.low : theta[g]) / n_groups;
  }
  if (c.bias_low > c.bias_high) std::swap(c.bias_low, c.bias_high);
  if (n_groups > 1) c.margin = 0.5 * (theta[0] - theta[1]);

  double square = 0.0;
  for (Index k = 0; k < problem.size(); ++k) {
    const double kink = problem.kink_of(k), own = theta[problem.group_of(k)];
    const double ridge = problem.ridge.empty() ? 0.0 : problem.ridge[k];
    const double up = up_slope(F[k], beta[k], kink) - own;
    const double low = low_slope(F[k], beta[k], kink) - own;
    if (beta[k] < problem.upper[k]) c.kkt_violation = std::max(c.kkt_violation, -up);
    if (beta[k] > problem.lower[k]) c.kkt_violation = std::max(c.kkt_violation, low);
    if (is_unbounded(beta[k], problem.lower[k], problem.upper[k], kink)) square += up * up;
    c.duality_gap += excess_of(beta[k], F[k] - ridge * beta[k] - own, ridge, kink, problem.lower[k],
                               problem.upper[k]);
  }
  if (c.n_usv > 0 && problem.has_equality)
    c.bias_std = std::sqrt(square / static_cast<double>(c.n_usv));
  return c;
}

}  // namespace kfu

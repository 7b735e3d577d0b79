#include "kfu/rank_newton.h"

#include <algorithm>
#include <cmath>

#include "kfu/buffer.h"
#include "kfu/rank_dual.h"

namespace kfu {

namespace {

// Of the conjugate gradients: fewer do no better than single steps.
constexpr double kFewIterations = 20;
constexpr double kSlow = 0.25;       // of the best decrease of an iteration: more do not pay
constexpr double kSufficient = 0.1;  // of the decrease that the slope promises
constexpr double kBacktrack = 0.25;
constexpr int kTrials = 12;
constexpr double kFlat = 1e-14;  // curvature relative to K below which a direction has none

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

// The pairs inside their box, and K between the points they touch.
template <class T>
class FreePairs {
 public:
  FreePairs(const SquareTier<T>& block, const SmoLoops<T, double>& loops,
            std::vector<LocalPair>& pairs)
      : block_(block), loops_(loops) {
    std::vector<std::int32_t> place(static_cast<std::size_t>(block.size()), -1);
    const auto place_of = [&](std::int32_t slot) {
      if (place[slot] < 0) {
        place[slot] = static_cast<std::int32_t>(slots_.size());
        slots_.push_back(slot);
      }
      return place[slot];
    };
    for (LocalPair& p : pairs) {
      if (!(p.alpha > 0.0 && p.alpha < p.upper)) continue;
      members.push_back(&p);
      u_.push_back(place_of(p.u));
      v_.push_back(place_of(p.v));
    }
  }

  std::vector<LocalPair*> members;

  /// Values of K behind one product with G.
  double cost() const { return static_cast<double>(slots_.size()) * slots_.size(); }

  void gather() {
    const Index n = static_cast<Index>(slots_.size()), ld = padded(n);
    K_.resize(n * ld);
    sums_.assign(static_cast<std::size_t>(ld), 0.0);
    rows_.resize(slots_.size());
    for (Index r = 0; r < n; ++r) {
      T* to = K_.data() + r * ld;
      const T* from = block_.get(slots_[r]);
      for (Index c = 0; c < n; ++c) to[c] = from[slots_[c]];
      std::fill(to + n, to + ld, T(0));
      rows_[r] = to;
    }
  }

  /// out = P K Pᵀ z over the members.
  void apply(const std::vector<double>& z, std::vector<double>& out) {
    const std::vector<double> coef = by_point(z);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    loops_.add_rows(sums_.data(), rows_.data(), coef.data(), static_cast<Index>(rows_.size()),
                    static_cast<Index>(sums_.size()));
    for (std::size_t k = 0; k < z.size(); ++k) out[k] = sums_[u_[k]] - sums_[v_[k]];
  }

  /// g of the whole block gains K Pᵀ z.
  void add_to(std::vector<double>& g, const std::vector<double>& z) const {
    const std::vector<double> coef = by_point(z);
    std::vector<const T*> rows;
    for (const std::int32_t s : slots_) rows.push_back(block_.get(s));
    loops_.add_rows(g.data(), rows.data(), coef.data(), static_cast<Index>(rows.size()),
                    static_cast<Index>(g.size()));
  }

 private:
  std::vector<double> by_point(const std::vector<double>& z) const {
    std::vector<double> coef(slots_.size(), 0.0);
    for (std::size_t k = 0; k < z.size(); ++k) {
      coef[u_[k]] += z[k];
      coef[v_[k]] -= z[k];
    }
    return coef;
  }

  const SquareTier<T>& block_;
  const SmoLoops<T, double>& loops_;
  std::vector<std::int32_t> slots_, u_, v_;
  Buffer<T> K_;
  std::vector<const T*> rows_;
  std::vector<double> sums_;
};

// d ≈ −G⁻¹F, a direction of descent. Returns the iterations.
template <class T>
Index conjugate_gradients(FreePairs<T>& free, const std::vector<double>& F, double goal, Index most,
                          std::vector<double>& d) {
  const std::size_t n = F.size();
  std::vector<double> r(n), z(n), p(n), Gp(n);
  for (std::size_t k = 0; k < n; ++k) r[k] = -F[k];
  const auto precondition = [&] {
    for (std::size_t k = 0; k < n; ++k) z[k] = r[k] / free.members[k]->curvature;
  };
  precondition();
  p = z;
  double rz = dot(r, z), largest = 0.0;
  Index iterations = 0;
  while (iterations < most) {
    free.apply(p, Gp);
    ++iterations;
    const double curved = dot(p, Gp);
    double scale = 0.0;
    for (std::size_t k = 0; k < n; ++k) scale += free.members[k]->curvature * p[k] * p[k];
    if (!(curved > kFlat * scale)) {  // downhill for ever: the box ends it
      if (iterations == 1) d = p;
      break;
    }
    const double step = rz / curved;
    double worst = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
      d[k] += step * p[k];
      r[k] -= step * Gp[k];
      worst = std::max(worst, std::fabs(r[k]));
    }
    const double decrease = 0.5 * step * rz;  // of the objective on the face
    largest = std::max(largest, decrease);
    if (worst <= goal || decrease <= kSlow * largest) break;
    precondition();
    const double next = dot(r, z);
    for (std::size_t k = 0; k < n; ++k) p[k] = z[k] + next / rz * p[k];
    rz = next;
  }
  return iterations;
}

}  // namespace

template <class T>
Index newton_step(const SquareTier<T>& block, const SmoLoops<T, double>& loops, double goal,
                  double budget, std::vector<LocalPair>& pairs, std::vector<double>& g) {
  FreePairs<T> free(block, loops, pairs);
  const std::size_t n = free.members.size();
  if (n < 2) return 0;
  const double affordable = budget / free.cost();
  if (affordable < std::min(0.5 * static_cast<double>(n), kFewIterations)) return 0;
  const Index most = static_cast<Index>(std::min(affordable, 2.0 * static_cast<double>(n)));
  free.gather();
  std::vector<double> F(n), d(n, 0.0), delta(n), G_delta(n);
  for (std::size_t k = 0; k < n; ++k) {
    const LocalPair& p = *free.members[k];
    F[k] = g[p.u] - g[p.v] - p.target;
  }
  Index iterations = conjugate_gradients(free, F, 0.5 * goal, most, d);
  double t = 1.0, change = 1.0;
  for (int trial = 0; trial < kTrials && !(change < 0.0); ++trial, t *= kBacktrack) {
    for (std::size_t k = 0; k < n; ++k) {
      const LocalPair& p = *free.members[k];
      delta[k] = std::min(std::max(p.alpha + t * d[k], 0.0), p.upper) - p.alpha;
    }
    free.apply(delta, G_delta);
    ++iterations;
    change = (1.0 - kSufficient) * dot(F, delta) + 0.5 * dot(delta, G_delta);
  }
  if (!(change < 0.0)) return iterations;
  for (std::size_t k = 0; k < n; ++k) {
    LocalPair& p = *free.members[k];
    p.alpha = std::min(std::max(p.alpha + delta[k], 0.0), p.upper);
  }
  free.add_to(g, delta);
  return iterations;
}

template Index newton_step<float>(const SquareTier<float>&, const SmoLoops<float, double>&, double,
                                  double, std::vector<LocalPair>&, std::vector<double>&);
template Index newton_step<double>(const SquareTier<double>&, const SmoLoops<double, double>&,
                                   double, double, std::vector<LocalPair>&, std::vector<double>&);

}  // namespace kfu

#include "kfu/extrapolation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace kfu {

namespace {

constexpr double kRidge = 1e-9;  // of the small system, relative: directions may coincide
// A difference of F is trusted from this multiple of the rounding of F.
constexpr double kTrusted = 256.0;
// Below this many moves a step along the snapshots costs more than the pair steps it may save.
constexpr Index kLeastMoved = 100;

// Solves H c = g for a symmetric positive definite m × m matrix, overwriting both; false if it is
// not. Only the lower triangle is read.
template <int m>
bool solve_in_place(double (&H)[m][m], double (&g)[m]) {
  for (int j = 0; j < m; ++j) {
    for (int i = j; i < m; ++i) {
      double s = H[i][j];
      for (int l = 0; l < j; ++l) s -= H[i][l] * H[j][l];
      if (i == j && !(s > 0.0)) return false;
      H[i][j] = i == j ? std::sqrt(s) : s / H[j][j];
    }
    for (int l = 0; l < j; ++l) g[j] -= H[j][l] * g[l];
    g[j] /= H[j][j];
  }
  for (int j = m; j-- > 0;) {
    for (int l = j + 1; l < m; ++l) g[j] -= H[l][j] * g[l];
    g[j] /= H[j][j];
  }
  return true;
}

double sign_of(double x) { return static_cast<double>((x > 0.0) - (x < 0.0)); }

}  // namespace

template <class G>
bool Extrapolation<G>::is_due(Index moved, Index n_unbounded) {
  moved_ += moved;
  return moved_ >= kLeastMoved &&
         static_cast<double>(moved_) >= sweep_ * static_cast<double>(n_unbounded);
}

template <class G>
void Extrapolation<G>::remember(const DescentView<G>& view, const std::vector<double>& extra) {
  moved_ = 0;
  Snapshot next;
  if (count() == kSnapshots) {  // its memory serves again
    next = std::move(snapshots_.front());
    snapshots_.erase(snapshots_.begin());
  }
  next.beta.assign(view.beta, view.beta + view.n);
  next.F.assign(view.F, view.F + view.n);
  next.extra = extra;
  snapshots_.push_back(std::move(next));
}

template <class G>
void Extrapolation<G>::forget() {
  moved_ = 0;
  snapshots_.clear();
}

template <class G>
bool Extrapolation<G>::propose(const DescentView<G>& view, Index most) {
  return !snapshots_.empty() && find_weights(view) && find_target(view) &&
         static_cast<Index>(stopped_.size()) <= most;
}

// Snapshots that are not there yet have no direction: the current state stands in for them.
template <class G>
bool Extrapolation<G>::find_weights(const DescentView<G>& view) {
  const double* beta_then[kSnapshots];
  const G* F_then[kSnapshots];
  for (int i = 0; i < kSnapshots; ++i) {
    beta_then[i] = i < count() ? snapshots_[i].beta.data() : view.beta;
    F_then[i] = i < count() ? snapshots_[i].F.data() : view.F;
  }
  double H[kSnapshots][kSnapshots] = {}, g[kSnapshots] = {}, widest[kSnapshots] = {};
  double largest_F = 0.0;
  for (Index k = 0; k < view.n; ++k) {
    const double beta = view.beta[k];
    const double slope = static_cast<double>(view.F[k]) + view.kink[k] * sign_of(beta);
    double D[kSnapshots], KD[kSnapshots];
    for (int i = 0; i < kSnapshots; ++i) {
      D[i] = beta - beta_then[i][k];
      KD[i] = static_cast<double>(view.F[k] - F_then[i][k]);
    }
    largest_F = std::max(largest_F, std::fabs(slope));
    for (int i = 0; i < kSnapshots; ++i) {
      for (int j = 0; j <= i; ++j) H[i][j] += D[i] * KD[j];
      g[i] -= D[i] * slope;
      widest[i] = std::max(widest[i], std::fabs(KD[i]));
    }
  }
  const double least = kTrusted * std::numeric_limits<G>::epsilon() * largest_F;
  double largest = 0.0;
  for (int i = 0; i < kSnapshots; ++i) {
    if (i < count() && !(widest[i] > least)) return false;
    largest = std::max(largest, H[i][i]);
  }
  for (int i = 0; i < kSnapshots; ++i) H[i][i] += kRidge * largest;
  if (!solve_in_place(H, g)) return false;
  std::copy(g, g + kSnapshots, weights_);
  return true;
}

// False if an equality cannot be balanced.
template <class G>
bool Extrapolation<G>::find_target(const DescentView<G>& view) {
  double lacking[kMostGroups] = {}, room[kMostGroups] = {};
  Index roomiest[kMostGroups] = {};
  target_.resize(static_cast<std::size_t>(view.n));
  stopped_.clear();
  stopped_delta_.clear();
  for (Index k = 0; k < view.n; ++k) {
    const double beta = view.beta[k], kink = view.kink[k];
    double wanted = beta;
    for (int i = 0; i < count(); ++i) wanted += weights_[i] * (beta - snapshots_[i].beta[k]);
    const bool is_at_kink = kink > 0.0 && beta == 0.0;
    const double least = is_at_kink ? 0.0 : piece_end_down(beta, view.lower[k], kink);
    const double most = is_at_kink ? 0.0 : piece_end_up(beta, view.upper[k], kink);
    const int g = view.group[k];
    target_[k] = std::min(most, std::max(least, wanted));
    lacking[g] += beta - target_[k];  // rounding included, which would grow from step to step
    if (target_[k] != wanted) {
      stopped_.push_back(k);
      stopped_delta_.push_back(target_[k] - wanted);
    } else if (std::min(most - wanted, wanted - least) > room[g]) {
      room[g] = std::min(most - wanted, wanted - least);
      roomiest[g] = k;
    }
  }
  for (int g = 0; g < view.n_groups && view.has_equality; ++g) {
    if (lacking[g] == 0.0) continue;
    if (!(std::fabs(lacking[g]) < room[g])) return false;
    stopped_.push_back(roomiest[g]);
    stopped_delta_.push_back(lacking[g]);
    target_[roomiest[g]] += lacking[g];
  }
  return true;
}

template <class G>
double Extrapolation<G>::amplification() const {
  double factor = 1.0;
  for (int i = 0; i < count(); ++i) factor += 2.0 * std::fabs(weights_[i]);
  return factor;
}

template <class G>
void Extrapolation<G>::advance(G* F) const {
  for (std::size_t k = 0; k < target_.size(); ++k) {
    double gain = 0.0;
    for (int i = 0; i < count(); ++i)
      gain += weights_[i] * static_cast<double>(F[k] - snapshots_[i].F[k]);
    F[k] = static_cast<G>(static_cast<double>(F[k]) + gain);
  }
}

template <class G>
void Extrapolation<G>::advance_extra(std::vector<double>& extra) const {
  for (std::size_t k = 0; k < extra.size(); ++k) {
    double gain = 0.0;
    for (int i = 0; i < count(); ++i) gain += weights_[i] * (extra[k] - snapshots_[i].extra[k]);
    extra[k] += gain;
  }
}

template <class G>
double objective_change(const DescentView<G>& view, const std::vector<double>& old_beta,
                        const std::vector<G>& old_F) {
  double change = 0.0;
  for (Index k = 0; k < view.n; ++k)
    change += 0.5 * (view.beta[k] - old_beta[k]) *
                  (static_cast<double>(view.F[k]) + static_cast<double>(old_F[k])) +
              view.kink[k] * (std::fabs(view.beta[k]) - std::fabs(old_beta[k]));
  return change;
}

template class Extrapolation<float>;
template class Extrapolation<double>;
template double objective_change(const DescentView<float>&, const std::vector<double>&,
                                 const std::vector<float>&);
template double objective_change(const DescentView<double>&, const std::vector<double>&,
                                 const std::vector<double>&);

}  // namespace kfu

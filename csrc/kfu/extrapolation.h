// Extrapolation of a coordinate descent along the differences of earlier states.
//
// Pair steps and chunks are coordinate descents: what is slow to go are directions that many
// coordinates share. F is affine in β, so between two moments of a run F − F_i = (K + ridge)(β −
// β_i): the curvature along D_i = β − β_i is known without a kernel value. The objective of dual.h
// is minimised over β + Σ c_i D_i for the last snapshots i, which is a system of a few unknowns:
//     H c = −g,  H_ij = D_i·(F − F_j),  g_i = D_i·(F + slope of the kinks).
// Coordinates that would leave their box, or pass their kink, stop there; the variable with the
// most room takes up what the equality of its group then lacks. F of the point so proposed is
//     F + Σ c_i (F − F_i) + Σ_k stopped_k K_k
// over the few stopped coordinates, whose rows the caller has or forms. A step that would stop too
// many of them is not proposed. Whether the objective has fallen is known after the step, and the
// caller takes back one that has not lowered it.
//
// Rounding errors of F are extrapolated too: an error e becomes e + Σ c_i (e − e_i), at most (1 + 2
// Σ|c_i|) times the largest so far. amplification() is that factor; what it may come to in the
// course of a run is for the caller to watch.
#pragma once

#include <vector>

#include "kfu/dual.h"

namespace kfu {

/// What there is to know of a descent in progress; arrays of n.
template <class G>
struct DescentView {
  Index n;
  const double* beta;
  const double* lower;
  const double* upper;
  const double* kink;
  const char* group;
  const G* F;
  int n_groups;
  bool has_equality;
};

template <class G>
class Extrapolation {
 public:
  /// `sweep`: the part of the unbounded variables that move between two snapshots.
  explicit Extrapolation(double sweep) : sweep_(sweep) {}

  /// To be called when variables moved; true when it is time for propose() and remember().
  bool is_due(Index moved, Index n_unbounded);
  /// Keeps (β, F) of the view as the newest snapshot.
  /// `extra`, of any length, is something else that is affine in the same way, for advance_extra().
  void remember(const DescentView<G>& view, const std::vector<double>& extra = {});
  /// Snapshots are of one set of variables in one order; the caller tells when that changes.
  void forget();

  /// The best point that the snapshots span; false if there is none that stops at most `most`
  /// variables.
  bool propose(const DescentView<G>& view, Index most);
  const std::vector<double>& target() const { return target_; }  ///< β there
  /// The stopped coordinates, and what K (plus ridge) has to be multiplied with for each.
  const std::vector<Index>& stopped() const { return stopped_; }
  const std::vector<double>& stopped_delta() const { return stopped_delta_; }
  /// What the errors of F may grow by in this step.
  double amplification() const;
  /// Moves F along the snapshots, the stopped coordinates' rows left to the caller.
  void advance(G* F) const;
  /// The same for what remember() was given as `extra`.
  void advance_extra(std::vector<double>& extra) const;

 private:
  struct Snapshot {
    std::vector<double> beta;
    std::vector<G> F;
    std::vector<double> extra;
  };

  static constexpr int kSnapshots = 3;

  bool find_weights(const DescentView<G>& view);
  bool find_target(const DescentView<G>& view);
  int count() const { return static_cast<int>(snapshots_.size()); }

  double sweep_;
  std::vector<Snapshot> snapshots_;
  double weights_[kSnapshots] = {};
  std::vector<double> target_, stopped_delta_;
  std::vector<Index> stopped_;
  Index moved_ = 0;  // since the last snapshot, one that moved twice counted twice
};

/// What the objective gained on the way from (old_beta, old_F) to (beta, F); negative: it fell.
template <class G>
double objective_change(const DescentView<G>& view, const std::vector<double>& old_beta,
                        const std::vector<G>& old_F);

extern template class Extrapolation<float>;
extern template class Extrapolation<double>;

}  // namespace kfu

// The ranking machine with a certificate: rounds of RankRounds, then g from float64 values of K
// from scratch, then refinement until the certificate itself meets the tolerance.
//
// The scheme is that of CertifiedSolver. Values of K are float32 unless asked otherwise or unless
// they are large. When the float64 violation misses the tolerance, the exact g replaces the
// maintained one and the rounds go on (the error of float32 values then acts on increments of γ
// only); when that no longer halves the violation, the rounds go on with float64 values.
#pragma once

#include <memory>
#include <vector>

#include "kfu/certified_solver.h"
#include "kfu/rank_dual.h"
#include "kfu/rank_rounds.h"

namespace kfu {

class RankSolver {
 public:
  /// `data` outlives the solver; alpha is feasible (empty: zeros).
  RankSolver(const DataView& data, const Kernel& kernel, RankProblem problem,
             std::vector<double> alpha, const SolverSettings& settings, Precision precision);

  /// One step: a round, or a check with refinement. `optimal` only with a certificate that says so.
  Status round();

  /// The certificate of the current α, computed now unless round() has just done so.
  const RankCertificate& certificate();
  const std::vector<double>& alpha() const { return state_.alpha; }
  /// γ by row of the data, from scratch.
  std::vector<double> coefficients() const;
  /// Counters over all precisions used.
  Info info() const;
  Index verification_evaluations() const { return verification_evaluations_; }
  double seconds_verification() const { return seconds_verification_; }
  Index refinements() const { return refinements_; }
  bool uses_float64() const { return uses_float64_; }
  bool changed_precision() const { return changed_precision_; }
  Simd simd() const { return simd_; }
  const char* layout() const { return layout_; }

 private:
  void start(bool float64);
  bool wants_float64();
  bool is_small() const;
  Index steps_left() const;
  void certify_now();
  Status after_reaching_the_tolerance();
  Status refine(Status reached);
  Status look_on_the_way();
  void change_to_float64();
  std::unique_ptr<LinearMap> linear_map() const;

  std::unique_ptr<SparseCopy> copy_;  // of dense data that are mostly zeros
  DataView data_;
  Kernel kernel_;
  RankProblem problem_;
  RankState state_;
  SolverSettings settings_;
  Precision precision_;
  bool is_linear_;
  bool uses_float64_ = false;
  bool changed_precision_ = false;
  double goal_;              // violation the rounds go to: the tolerance, less when polishing
  Index polish_until_ = -1;  // iterations at which polishing ends; −1: not polishing
  Simd simd_ = Simd::baseline;
  const char* layout_ = "dense";
  std::unique_ptr<Gram<float>> gram32_;
  std::unique_ptr<Gram<double>> gram64_;
  std::unique_ptr<RankLoop> loop_;
  Info past_;  // counters of loops that were replaced
  RankCertificate certificate_;
  bool certificate_is_current_ = false;
  double last_gap_;
  Index refinements_ = 0;
  Index next_look_;
  Index verification_evaluations_ = 0;
  double seconds_verification_ = 0;
};

}  // namespace kfu

// A dual solver whose answer is checked: rounds of DualSolver, then the certificate in float64,
// then refinement until the certificate itself meets the tolerance.
//
// Rows of K are float32 unless asked otherwise or unless values of K are large. When the float64
// gap misses the tolerance, the exact gradient replaces the maintained one and the rounds go on
// (the error of float32 rows then acts on increments of β only). When that no longer halves the
// gap, and the precision is automatic, the solver is rebuilt on float64 rows, starting where it is.
// Long runs are looked at, and refined, on the way.
//
// Polishing (a setting): small problems use float64 rows from the start and, once the tolerance is
// met, go on to rounding accuracy for a bounded number of steps. It costs microseconds, and makes
// the answer a function of the problem rather than of the path to it: an example of weight two is
// then an example given twice, to ten digits.
#pragma once

#include <memory>
#include <vector>

#include "kfu/certificate.h"
#include "kfu/dual.h"
#include "kfu/dual_solver.h"
#include "kfu/exact_gradient.h"
#include "kfu/gram.h"
#include "kfu/info.h"
#include "kfu/kernel_store.h"
#include "kfu/settings.h"

namespace kfu {

enum class Precision { float32, float64, automatic };

class CertifiedSolver {
 public:
  /// beta is feasible (empty: zeros).
  CertifiedSolver(std::shared_ptr<KernelStore> store, DualProblem problem, std::vector<double> beta,
                  const SolverSettings& settings, Precision precision);

  /// One step: a round, or a check with refinement. `optimal` only with a certificate that says so.
  Status round();

  /// The certificate of the current β, computed now unless round() has just done so.
  const Certificate& certificate();
  std::vector<double> beta() const { return loop_->beta(); }
  double objective() { return loop_->objective(); }
  /// Counters over all precisions used.
  Info info() const;
  Index verification_evaluations() const { return verification_evaluations_; }
  double seconds_verification() const { return seconds_verification_; }
  Index refinements() const { return refinements_; }
  bool uses_float64_rows() const { return gram64_rows_; }
  /// Whether float32 rows did not do and float64 rows took over.
  bool changed_precision() const { return changed_precision_; }
  Simd simd() const { return simd_; }
  const char* layout() const { return layout_; }

 private:
  void start(const std::vector<double>& beta, const std::vector<double>* gradient, bool float64);
  template <class T>
  void start_with(const Gram<T>& gram, const std::vector<double>& beta,
                  const std::vector<double>* gradient, const SolverSettings& settings,
                  const SharedRows<T>& rows);
  SharedRows<float> shared_rows() const;
  void certify_now();
  bool may_polish() const;
  bool wants_float64();
  Status look_on_the_way();
  void change_to_float64();
  Status refine(Status reached);
  ApproximateGradient maintained_gradient(const std::vector<double>& beta) const;
  void remember_reset(const std::vector<double>& beta);
  std::unique_ptr<LinearMap> linear_map() const;

  std::shared_ptr<KernelStore> store_;
  DualProblem problem_;
  SolverSettings settings_;
  Precision precision_;
  bool gram64_rows_ = false;
  bool changed_precision_ = false;
  bool is_polishing_ = false;
  Simd simd_ = Simd::baseline;
  const char* layout_ = "dense";
  std::unique_ptr<OuterLoop> loop_;
  Info past_;  // counters of loops that were replaced
  std::vector<double> F_;
  ValueError value_error_;            // of the rows in use
  std::vector<double> F_errors_;      // of entries of F_ that are not exact: they do not matter
  std::vector<double> reset_errors_;  // of the gradient the loop was last given; empty: none
  std::vector<double> reset_beta_;    // β at that time; empty: zeros
  Certificate certificate_;
  bool certificate_is_current_ = false;
  double last_gap_;
  double last_error_;  // of the maintained gradient, when it was found too large on the way
  Index refinements_ = 0;
  Index next_look_;
  Index verification_evaluations_ = 0;
  double seconds_verification_ = 0;
};

}  // namespace kfu

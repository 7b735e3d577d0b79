// Single-machine multiclass SVMs (Crammer–Singer, Weston–Watkins): all K functions from one dual
// problem, over any Gram, with a float64 certificate. The problem, its KKT conditions and the exact
// optimum of one row are in multiclass_row.h.
//
// Rounds as elsewhere in kfu: a chunk of rows (the most violating ones and the free ones) is solved
// among itself (multiclass_chunk.h), then one pass of kernel panels, whose every value serves all K
// classes, brings the gradient G (n × K, float64) up to date.
//
// Values of K are float32 unless asked otherwise or unless they are large. When the rounds are done
// G is computed again from float64 values; if the tolerance is missed, the exact G replaces the
// maintained one and the rounds go on; when that no longer halves the violation, the values of the
// rounds become float64, as in certified_solver.h. The linear kernel has weight vectors instead of
// kernel values (multiclass_linear.h): its G is float64 at all times.
//
// Biases (optional) add the constraints s_k = Σ_i B_ik = 0. They are met by the proximal point
// method on b, which is the method of multipliers on the dual: the problem
//   min D(B) + Σ_k (b°_k s_k + ½ρ s_k²)
// has no equality that couples rows (it is the problem above with the kernel K + ρ and margins
// shifted by b°), its bias is b = b° + ρs, and b° ← b ends at s = 0 (R. T. Rockafellar, Math. Oper.
// Res. 1 (1976)). ρ is the mean of K(x_i, x_i). G holds b, so the KKT conditions and the duality
// gap of the rows are those of the problem with biases once s = 0; the certificate counts ρ|s_k|,
// the next move of b_k, as a violation and |b_k s_k| as duality gap.
#pragma once

#include <memory>
#include <vector>

#include "kfu/certificate.h"
#include "kfu/gram.h"
#include "kfu/info.h"
#include "kfu/multiclass_chunk.h"
#include "kfu/multiclass_row.h"
#include "kfu/settings.h"
#include "kfu/sparse_copy.h"

namespace kfu {

class MulticlassSolver {
 public:
  enum class Precision { float32, float64, automatic };

  /// `data` outlives the solver. `B` (n × n_classes, by row) is feasible, `bias` any; empty: zeros.
  MulticlassSolver(const DataView& data, const Kernel& kernel, MulticlassProblem problem,
                   std::vector<double> B, std::vector<double> bias, const SolverSettings& settings,
                   Precision precision);

  /// One step: a chunk, or a check with refinement. `optimal` only with a certificate that says so.
  Status round();

  /// The certificate of the current solution, computed now unless round() has just done so. Its
  /// fields for one bias are zero.
  const Certificate& certificate();
  const std::vector<double>& B() const { return B_; }  ///< n × n_classes, by row
  std::vector<double> bias() const;

  Info info() const;
  Index verification_evaluations() const { return verification_evaluations_; }
  double seconds_verification() const { return seconds_verification_; }
  Index refinements() const { return refinements_; }
  bool uses_float64_rows() const { return is_float64_; }
  /// Whether float32 values did not do and float64 values took over.
  bool changed_precision() const { return changed_precision_; }
  Simd simd() const { return simd_; }
  const char* layout() const { return layout_; }

 private:
  MulticlassRow row_at(Index i, const std::vector<double>& G, std::vector<double>& gathered) const;
  bool wants_float64(Precision precision);
  void use_float64(bool float64);
  void set_curvature();
  Index chunk_limit(Index n_free) const;
  double scan();
  void choose_chunk();
  Status solve_chunk(double largest);
  bool add_moves();
  double bias_step() const;
  void move_bias_centre();
  void exact_gradient(std::vector<double>& G);
  void certify_now();
  Status check(bool is_done);
  Status refine(bool is_done);

  std::unique_ptr<SparseCopy> copy_;  // of dense data that are mostly zeros, for both precisions
  DataView data_;
  Kernel kernel_;
  MulticlassProblem problem_;
  SolverSettings settings_;
  bool is_automatic_;
  bool is_linear_;
  bool is_float64_ = false;
  bool changed_precision_ = false;
  bool is_polishing_ = false;
  Simd simd_ = Simd::baseline;
  const char* layout_ = "dense";
  Index limit_;           // of iterations, as asked for
  Index max_iterations_;  // the same, or less while polishing
  double goal_;           // violation the rounds aim at

  RowProblem row_problem_;
  std::unique_ptr<Gram<float>> gram32_;
  std::unique_ptr<Gram<double>> gram64_;
  std::unique_ptr<MulticlassChunk> chunk_solver_;
  std::vector<double> curvature_;  // of a row: K(x_i, x_i) + ρ, with a floor
  std::vector<double> B_;          // n × K
  std::vector<double> G_;          // K × n
  std::vector<double> centre_;     // b°
  std::vector<double> sums_;       // s
  double rho_ = 0.0;

  std::vector<double> violations_;
  std::vector<char> is_free_;
  std::vector<Index> chunk_;
  std::vector<double> before_;  // B of the chunk's rows

  std::vector<double> exact_G_;
  Certificate certificate_;
  bool certificate_is_current_ = false;
  double last_gap_;
  Index idle_rounds_ = 0;  // since D last fell
  Index refinements_ = 0;
  Index verification_evaluations_ = 0;
  double seconds_verification_ = 0;
  Index past_evaluations_ = 0;  // of a chunk solver that was replaced
  Index past_face_steps_ = 0;   // of the same
  Info info_;
};

}  // namespace kfu

#include "kfu/certified_solver.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace kfu {

namespace {

constexpr double kLargestForFloat32 = 1e4;  // of K(i, i)
constexpr Index kFirstLook = 200000;        // steps before float32 rows are checked on the way
constexpr Index kSmall = 512;               // variables of a problem that is polished
constexpr double kPolished = 1e-11;         // gap it is polished to, if rounding lets it
constexpr Index kPolishStepsPerPoint = 50;
constexpr Index kUnlimited = Index(1) << 60;
constexpr double kSumError = 1e-10;  // of a maintained float64 sum, relative to Σ|β|

bool is_plain_linear(const Kernel& kernel) {
  if (kernel.terms.size() != 1 || kernel.terms[0].leaves.size() != 1) return false;
  const Leaf& leaf = kernel.terms[0].leaves[0];
  return kernel.terms[0].weight == 1.0 && leaf.form == Form::value && leaf.scale.empty() &&
         leaf.gamma == 1.0 && std::strcmp(kernel_info(leaf.kind).name, "linear") == 0;
}

double sum_of_moduli(const std::vector<double>& values) {
  double total = 0.0;
  for (const double value : values) total += std::fabs(value);
  return total;
}

}  // namespace

CertifiedSolver::CertifiedSolver(const DataView& data, const Kernel& kernel, DualProblem problem,
                                 std::vector<double> beta, const SolverSettings& settings,
                                 Precision precision)
    : copy_(!is_lookup(kernel) && is_mostly_zero(data)
                ? std::make_unique<SparseCopy>(data, settings.threads)
                : nullptr),
      data_(copy_ ? copy_->view() : data),
      kernel_(kernel),
      problem_(std::move(problem)),
      settings_(settings),
      precision_(precision),
      is_linear_(is_plain_linear(kernel)),
      last_gap_(std::numeric_limits<double>::infinity()),
      next_look_(kFirstLook) {
  if (beta.empty()) beta.assign(problem_.linear.size(), 0.0);
  start(beta, nullptr, wants_float64());
}

std::unique_ptr<LinearMap> CertifiedSolver::linear_map() const {
  return std::unique_ptr<LinearMap>(is_linear_ ? new LinearMap(data_, settings_.threads) : nullptr);
}

// Multiply-adds behind one value of K: the features of a point, or its entries, which cost about
// twice as much each.
double CertifiedSolver::value_cost() const {
  if (is_lookup(kernel_)) return 1.0;
  if (!data_.is_csr) return static_cast<double>(data_.d);
  return 2.0 * static_cast<double>(data_.indptr[data_.n]) /
         static_cast<double>(std::max<Index>(data_.n, 1));
}

void CertifiedSolver::start(const std::vector<double>& beta, const std::vector<double>* gradient,
                            bool float64) {
  gram64_rows_ = float64;
  SolverSettings settings = settings_;
  if (settings.max_iterations > 0)
    settings.max_iterations = std::max<Index>(1, settings.max_iterations - past_.iterations);
  settings.value_cost = value_cost();
  if (float64) {
    if (!gram64_) gram64_ = make_gram<double>(data_, kernel_, settings_.threads, settings_.simd);
    simd_ = gram64_->simd();
    layout_ = gram64_->layout();
    value_error_ = gram64_->value_error();
    loop_.reset(new DualSolver<double>(*gram64_, problem_, beta, gradient, settings, linear_map()));
  } else {
    if (!gram32_) gram32_ = make_gram<float>(data_, kernel_, settings_.threads, settings_.simd);
    simd_ = gram32_->simd();
    layout_ = gram32_->layout();
    value_error_ = gram32_->value_error();
    loop_.reset(new DualSolver<float>(*gram32_, problem_, beta, gradient, settings, linear_map()));
  }
}

Status CertifiedSolver::round() {
  certificate_is_current_ = false;
  const Status reached = loop_->round();
  if (reached == Status::running) return look_on_the_way();
  if (reached == Status::max_iterations && !is_polishing_) return reached;
  certify_now();
  if (certificate_.kkt_gap > settings_.tolerance) {
    if (!is_polishing_ || reached == Status::stalled) return refine(reached);
    loop_->set_goal(settings_.tolerance, kUnlimited);  // the gap does not fall at every step
    return Status::running;
  }
  if (is_polishing_ || !may_polish()) return Status::optimal;
  is_polishing_ = true;
  Index steps = kPolishStepsPerPoint * problem_.size();
  if (settings_.max_iterations > 0)
    steps = std::min(steps, settings_.max_iterations - info().iterations);
  if (steps <= 0) return Status::optimal;
  loop_->set_goal(std::min(kPolished, settings_.tolerance), steps);
  return Status::running;
}

bool CertifiedSolver::may_polish() const {
  return settings_.polish && problem_.size() <= kSmall && gram64_rows_;
}

// Whether the rows are float64 from the start: asked for, or needed for polishing, or because
// values of K are so large (unscaled data under a linear or polynomial kernel) that their rounding
// to float32 drowns the margins, which are of order one.
bool CertifiedSolver::wants_float64() {
  if (precision_ != Precision::automatic) return precision_ == Precision::float64;
  if (settings_.polish && problem_.size() <= kSmall) return true;
  gram32_ = make_gram<float>(data_, kernel_, settings_.threads, settings_.simd);
  std::vector<double> diagonal(static_cast<std::size_t>(gram32_->size()));
  gram32_->diagonal(diagonal.data());
  double largest = 0.0;
  for (const Index point : problem_.points) largest = std::max(largest, diagonal[point]);
  if (largest <= kLargestForFloat32) return false;
  gram32_.reset();
  return true;
}

// A long run on float32 rows may be after a gap that their error hides: compare the maintained
// gradient with the exact one from time to time, and go on with float64 rows if so.
Status CertifiedSolver::look_on_the_way() {
  if (gram64_rows_ || precision_ != Precision::automatic || is_linear_) return Status::running;
  const Info now = loop_->info();
  if (now.iterations < next_look_) return Status::running;
  next_look_ = 2 * now.iterations;
  const std::vector<double> maintained = loop_->gradient();
  if (maintained.empty()) return Status::running;
  certify_now();
  certificate_is_current_ = false;
  double error = 0.0;
  for (std::size_t k = 0; k < maintained.size(); ++k)
    error = std::max(error, std::fabs(maintained[k] - F_[k]));
  if (error > 0.1 * std::max(now.gap, settings_.tolerance)) change_to_float64();
  return Status::running;
}

// The rounds are done by their own gradient, but the certificate is not met.
Status CertifiedSolver::refine(Status reached) {
  const bool improves = reached == Status::optimal && certificate_.kkt_gap <= 0.5 * last_gap_;
  last_gap_ = certificate_.kkt_gap;
  ++refinements_;
  if (improves) {
    loop_->reset_gradient(F_);
    remember_reset(loop_->beta());
    return Status::running;
  }
  if (!gram64_rows_ && precision_ == Precision::automatic) {
    change_to_float64();
    return Status::running;
  }
  return Status::stalled;
}

// Goes on with float64 rows from the current β, whose gradient is F_.
void CertifiedSolver::change_to_float64() {
  past_ = info();
  changed_precision_ = true;
  const std::vector<double> beta = loop_->beta();
  loop_.reset();
  gram32_.reset();
  last_gap_ = std::numeric_limits<double>::infinity();
  start(beta, &F_, true);
  remember_reset(beta);
}

double CertifiedSolver::weighted_total(const std::vector<double>& beta) const {
  double total = 0.0;
  if (!value_error_.is_known) return total;
  for (Index k = 0; k < problem_.size(); ++k)
    total += std::fabs(beta[k]) * value_error_.by_point[problem_.points[k]];
  return total;
}

void CertifiedSolver::remember_reset(const std::vector<double>& beta) {
  reset_errors_ = F_errors_;
  reset_total_ = sum_of_moduli(beta);
  reset_weighted_ = weighted_total(beta);
}

// What the rounds maintain, with a bound on its error. Values of K at precision T are the same each
// time they are computed, so the sum of all updates is K_T(β − β₀), β₀ being β at the last reset:
// its error at k is Σ_j |β − β₀|_j · (error of the value K(k, j)), plus that of the reset. Empty
// when no bound is known or the gradient is not complete.
ApproximateGradient CertifiedSolver::maintained_gradient(const std::vector<double>& beta) const {
  if (!value_error_.is_known) return {};
  ApproximateGradient maintained{loop_->gradient(), {}, {}};
  if (maintained.values.empty()) return maintained;
  const double moved = sum_of_moduli(beta) + reset_total_;
  const double common = weighted_total(beta) + reset_weighted_;
  maintained.errors.resize(beta.size());
  for (Index k = 0; k < problem_.size(); ++k) {
    const double own = value_error_.by_point[problem_.points[k]];
    maintained.errors[k] = (value_error_.constant + kSumError + own) * moved + common +
                           (reset_errors_.empty() ? 0.0 : reset_errors_[k]);
  }
  if (!gram64_rows_ && reset_errors_.empty() && reset_total_ == 0.0)
    maintained.tighten = [this, beta, moved](const std::vector<Index>& variables,
                                             std::vector<double>& errors) {
      tighten_errors(problem_, beta, *gram32_, value_error_, kSumError * moved, variables, errors);
    };
  return maintained;
}

void CertifiedSolver::certify_now() {
  LapClock clock;
  const std::vector<double> beta = loop_->beta();
  if (is_linear_) {
    exact_linear_gradient(problem_, beta, data_, settings_.threads, F_);
  } else {
    if (!gram64_) gram64_ = make_gram<double>(data_, kernel_, settings_.threads, settings_.simd);
    ApproximateGradient maintained = maintained_gradient(beta);
    const bool is_usable = !maintained.values.empty();
    verification_evaluations_ += exact_gradient(problem_, beta, *gram64_, settings_.threads,
                                                is_usable ? &maintained : nullptr, F_);
    F_errors_ = std::move(maintained.errors);
  }
  certificate_ = certify(problem_, beta, F_);
  certificate_is_current_ = true;
  clock.lap(seconds_verification_);
}

const Certificate& CertifiedSolver::certificate() {
  if (!certificate_is_current_) certify_now();
  return certificate_;
}

Info CertifiedSolver::info() const {
  Info total = loop_->info();
  total.rounds += past_.rounds;
  total.iterations += past_.iterations;
  total.kernel_evaluations += past_.kernel_evaluations;
  total.cache_hits += past_.cache_hits;
  total.cache_misses += past_.cache_misses;
  total.reductions += past_.reductions;
  total.shrinks += past_.shrinks;
  total.seconds_selection += past_.seconds_selection;
  total.seconds_block += past_.seconds_block;
  total.seconds_subproblem += past_.seconds_subproblem;
  total.seconds_gradient += past_.seconds_gradient;
  return total;
}

}  // namespace kfu

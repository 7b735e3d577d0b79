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
// What the rounds on float32 rows aim at, as a part of the tolerance: a certificate that misses it
// by their rounding costs more than the round or two that this takes.
constexpr double kAim = 0.97;
constexpr double kSumError = 1e-10;  // of a maintained float64 sum, relative to Σ|β|

double sum_of_moduli(const std::vector<double>& values) {
  double total = 0.0;
  for (const double value : values) total += std::fabs(value);
  return total;
}

}  // namespace

CertifiedSolver::CertifiedSolver(std::shared_ptr<KernelStore> store, DualProblem problem,
                                 std::vector<double> beta, const SolverSettings& settings,
                                 Precision precision)
    : store_(std::move(store)),
      problem_(std::move(problem)),
      settings_(settings),
      precision_(precision),
      last_gap_(std::numeric_limits<double>::infinity()),
      last_error_(std::numeric_limits<double>::infinity()),
      next_look_(kFirstLook) {
  if (beta.empty()) beta.assign(problem_.linear.size(), 0.0);
  start(beta, nullptr, wants_float64());
}

std::unique_ptr<LinearMap> CertifiedSolver::linear_map() const {
  return std::unique_ptr<LinearMap>(
      store_->is_linear() ? new LinearMap(store_->data(), settings_.threads) : nullptr);
}

void CertifiedSolver::start(const std::vector<double>& beta, const std::vector<double>* gradient,
                            bool float64) {
  gram64_rows_ = float64;
  SolverSettings settings = settings_;
  if (settings.max_iterations > 0)
    settings.max_iterations = std::max<Index>(1, settings.max_iterations - past_.iterations);
  settings.value_cost = store_->value_cost();
  if (float64) {
    start_with<double>(store_->gram<double>(), beta, gradient, settings, {});
  } else {
    start_with(store_->gram<float>(), beta, gradient, settings, shared_rows());
  }
}

template <class T>
void CertifiedSolver::start_with(const Gram<T>& gram, const std::vector<double>& beta,
                                 const std::vector<double>* gradient,
                                 const SolverSettings& settings, const SharedRows<T>& rows) {
  simd_ = gram.simd();
  layout_ = gram.layout();
  value_error_ = gram.value_error();
  SolverSettings chosen = settings;
  if (sizeof(T) == sizeof(float) && !store_->is_linear()) chosen.tolerance *= kAim;
  loop_.reset(new DualSolver<T>(gram, problem_, beta, gradient, chosen, linear_map(), rows));
}

// The rows of the store, if the variables are the points in their order.
SharedRows<float> CertifiedSolver::shared_rows() const {
  if (problem_.size() != store_->data().n) return {};
  for (Index k = 0; k < problem_.size(); ++k)
    if (problem_.points[k] != k) return {};
  return store_->rows();
}

Status CertifiedSolver::round() {
  certificate_is_current_ = false;
  const Status reached = loop_->round();
  if (reached == Status::running) return look_on_the_way();
  const bool is_spent = reached == Status::max_iterations && !is_polishing_;
  if (is_spent && loop_->info().gap > settings_.tolerance) return reached;
  certify_now();
  if (is_spent && certificate_.kkt_gap > settings_.tolerance) return reached;
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
  const Gram<float>& gram = store_->gram<float>();
  std::vector<double> diagonal(static_cast<std::size_t>(gram.size()));
  gram.diagonal(diagonal.data());
  double largest = 0.0;
  for (const Index point : problem_.points) largest = std::max(largest, diagonal[point]);
  if (largest <= kLargestForFloat32) return false;
  if (store_.use_count() == 1) store_->drop_float32();
  return true;
}

// A long run on float32 rows may be after a gap that their error hides: compare the maintained
// gradient with the exact one from time to time. If so, go on from the exact gradient, as refine()
// does, and with float64 rows if the next time it is not down to half of that.
Status CertifiedSolver::look_on_the_way() {
  if (gram64_rows_ || precision_ != Precision::automatic || store_->is_linear())
    return Status::running;
  const Info now = loop_->info();
  if (now.iterations < next_look_ || now.n_active < problem_.size()) return Status::running;
  loop_->renew();
  const std::vector<double> maintained = loop_->gradient();
  if (maintained.empty()) return Status::running;
  next_look_ = 2 * now.iterations;
  certify_now();
  certificate_is_current_ = false;
  double error = 0.0;
  for (std::size_t k = 0; k < maintained.size(); ++k)
    error = std::max(error, std::fabs(maintained[k] - F_[k]));
  if (error <= 0.1 * std::max(now.gap, settings_.tolerance)) return Status::running;
  if (error > 0.5 * last_error_) {
    change_to_float64();
    return Status::running;
  }
  last_error_ = error;
  ++refinements_;
  loop_->reset_gradient(F_);
  remember_reset(loop_->beta());
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
  if (store_.use_count() == 1) store_->drop_float32();
  last_gap_ = std::numeric_limits<double>::infinity();
  start(beta, &F_, true);
  remember_reset(beta);
}

void CertifiedSolver::remember_reset(const std::vector<double>& beta) {
  reset_errors_ = F_errors_;
  reset_beta_ = beta;
}

// What the rounds maintain, with a bound on its error. Values of K at precision T, in fixed point
// or not, are the same each time they are used, and K has the same bits both ways, so the sum of
// all updates is K_T(β − β₀), β₀ being β at the last reset, but for what coarse rows lack, which
// the loop knows a bound for: its error at k is Σ_j |β − β₀|_j · (error of the value K(k, j)), plus
// that of the reset. (Where F was mended, the way to there counts for itself.) Empty when no bound
// is known or the gradient is not complete.
ApproximateGradient CertifiedSolver::maintained_gradient(const std::vector<double>& beta) const {
  if (!value_error_.is_known) return {};
  ApproximateGradient maintained{loop_->gradient(), {}, loop_->usual_rounding(), {}};
  if (maintained.values.empty()) return maintained;
  double moved = 0.0, common = 0.0;  // Σ_j |β − β₀|_j, and with the points' part of the error
  const std::vector<double>& renewed = loop_->renewed_beta();
  for (Index k = 0; k < problem_.size(); ++k) {
    const double then = reset_beta_.empty() ? 0.0 : reset_beta_[k];
    const double on_the_way = renewed.empty() ? then : renewed[k];
    const double gained = std::fabs(on_the_way - then) + std::fabs(beta[k] - on_the_way);
    moved += gained;
    common += gained * value_error_.by_point[problem_.points[k]];
  }
  const double summed = sum_of_moduli(beta) + sum_of_moduli(reset_beta_);  // behind rounding
  std::vector<double> rounding = loop_->rounding_errors(moved);
  for (double& error : rounding) error += kSumError * summed;
  maintained.errors.resize(beta.size());
  for (Index k = 0; k < problem_.size(); ++k) {
    const double own = value_error_.by_point[problem_.points[k]];
    maintained.errors[k] = (value_error_.constant + own) * moved + common + rounding[k] +
                           (reset_errors_.empty() ? 0.0 : reset_errors_[k]);
  }
  if (!gram64_rows_ && reset_errors_.empty() && reset_beta_.empty())
    maintained.tighten = [this, beta, rounding](const std::vector<Index>& variables,
                                                std::vector<double>& errors) {
      tighten_errors(problem_, beta, store_->gram<float>(), value_error_, rounding, variables,
                     errors);
    };
  return maintained;
}

void CertifiedSolver::certify_now() {
  LapClock clock;
  const std::vector<double> beta = loop_->beta();
  if (store_->is_linear()) {
    exact_linear_gradient(problem_, beta, store_->data(), settings_.threads, F_);
  } else {
    ApproximateGradient maintained = maintained_gradient(beta);
    const bool is_usable = !maintained.values.empty();
    verification_evaluations_ +=
        exact_gradient(problem_, beta, store_->gram<double>(), settings_.threads,
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
  total.overlapped_rounds += past_.overlapped_rounds;
  total.iterations += past_.iterations;
  total.kernel_evaluations += past_.kernel_evaluations;
  total.cache_hits += past_.cache_hits;
  total.cache_misses += past_.cache_misses;
  total.reductions += past_.reductions;
  total.shrinks += past_.shrinks;
  total.renewals += past_.renewals;
  total.extrapolations += past_.extrapolations;
  total.seconds_selection += past_.seconds_selection;
  total.seconds_block += past_.seconds_block;
  total.seconds_subproblem += past_.seconds_subproblem;
  total.seconds_gradient += past_.seconds_gradient;
  return total;
}

}  // namespace kfu

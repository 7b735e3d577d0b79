#include "kfu/rank_solver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kfu/exact_gradient.h"

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLargestForFloat32 = 1e4;  // of K(i, i)
constexpr Index kFirstLook = 200000;        // steps before float32 values are checked on the way
constexpr Index kSmall = 512;               // pairs of a problem that is polished
constexpr double kPolished = 1e-11;         // violation it is polished to, if rounding lets it
constexpr Index kPolishStepsPerPair = 200;
constexpr Index kMostSteps = 10000000;  // the limits nobody asked for
constexpr Index kMostStepsPerPair = 100;

}  // namespace

RankSolver::RankSolver(const DataView& data, const Kernel& kernel, RankProblem problem,
                       std::vector<double> alpha, const SolverSettings& settings,
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
      goal_(settings.tolerance),
      last_gap_(kInf),
      next_look_(kFirstLook) {
  settings_.value_cost = value_cost(data_, kernel_);
  if (settings_.max_iterations == 0)
    settings_.max_iterations = std::max(kMostSteps, kMostStepsPerPair * problem_.n_pairs());
  if (alpha.empty()) alpha.assign(problem_.upper.size(), 0.0);
  state_.alpha = std::move(alpha);
  state_.gamma.assign(problem_.points.size(), 0.0);
  state_.g.assign(problem_.points.size(), 0.0);
  const bool is_zero = std::all_of(state_.alpha.begin(), state_.alpha.end(),
                                   [](double value) { return value == 0.0; });
  if (!is_zero) certify_now();  // γ and g of the start, exactly
  start(wants_float64());
}

std::unique_ptr<LinearMap> RankSolver::linear_map() const {
  return std::unique_ptr<LinearMap>(is_linear_ ? new LinearMap(data_, settings_.threads) : nullptr);
}

bool RankSolver::is_small() const { return settings_.polish && problem_.n_pairs() <= kSmall; }

// Float64 values from the start: asked for, or needed for polishing, or because values of K are so
// large that their rounding to float32 drowns margins of order one.
bool RankSolver::wants_float64() {
  if (precision_ != Precision::automatic) return precision_ == Precision::float64;
  if (is_small()) return true;
  gram32_ = make_gram<float>(data_, kernel_, settings_.threads, settings_.simd);
  std::vector<double> diagonal(static_cast<std::size_t>(gram32_->size()));
  gram32_->diagonal(diagonal.data());
  double largest = 0.0;
  for (const Index point : problem_.points) largest = std::max(largest, diagonal[point]);
  if (largest <= kLargestForFloat32) return false;
  gram32_.reset();
  return true;
}

void RankSolver::start(bool float64) {
  uses_float64_ = float64;
  if (float64) {
    if (!gram64_) gram64_ = make_gram<double>(data_, kernel_, settings_.threads, settings_.simd);
    simd_ = gram64_->simd();
    layout_ = gram64_->layout();
    loop_.reset(new RankRounds<double>(*gram64_, problem_, state_, settings_, linear_map()));
  } else {
    if (!gram32_) gram32_ = make_gram<float>(data_, kernel_, settings_.threads, settings_.simd);
    simd_ = gram32_->simd();
    layout_ = gram32_->layout();
    loop_.reset(new RankRounds<float>(*gram32_, problem_, state_, settings_, linear_map()));
  }
}

Index RankSolver::steps_left() const {
  const Index limit = polish_until_ >= 0 ? std::min(polish_until_, settings_.max_iterations)
                                         : settings_.max_iterations;
  return limit - info().iterations;
}

Status RankSolver::round() {
  certificate_is_current_ = false;
  const Status reached = loop_->round(goal_, steps_left());
  if (reached == Status::running) return look_on_the_way();
  if (reached == Status::max_iterations && polish_until_ < 0) return reached;
  certify_now();
  if (certificate_.kkt_gap <= settings_.tolerance) return after_reaching_the_tolerance();
  polish_until_ = -1;
  goal_ = settings_.tolerance;
  return refine(reached);
}

// Small problems go on to rounding accuracy, for a bounded number of steps.
Status RankSolver::after_reaching_the_tolerance() {
  const bool may_polish = is_small() && uses_float64_ && polish_until_ < 0;
  if (!may_polish) return Status::optimal;
  polish_until_ = info().iterations + kPolishStepsPerPair * problem_.n_pairs();
  goal_ = std::min(kPolished, settings_.tolerance);
  return Status::running;
}

// A long run on float32 values may be after a violation that their error hides: compare the
// maintained g with the exact one from time to time, and change to float64 if so.
Status RankSolver::look_on_the_way() {
  if (uses_float64_ || precision_ != Precision::automatic || is_linear_) return Status::running;
  const Info now = loop_->info();
  if (now.iterations < next_look_) return Status::running;
  next_look_ = 2 * now.iterations;
  const std::vector<double> maintained = state_.g;
  certify_now();
  double error = 0.0;
  for (std::size_t i = 0; i < maintained.size(); ++i)
    error = std::max(error, std::fabs(maintained[i] - state_.g[i]));
  certificate_is_current_ = false;
  if (error > 0.1 * std::max(now.gap, settings_.tolerance)) change_to_float64();
  return Status::running;
}

// The rounds are done by their own g, but the certificate is not met. The exact g is in place.
Status RankSolver::refine(Status reached) {
  const bool improves = reached == Status::optimal && certificate_.kkt_gap <= 0.5 * last_gap_;
  last_gap_ = certificate_.kkt_gap;
  ++refinements_;
  if (improves) return Status::running;
  if (uses_float64_ || precision_ != Precision::automatic) return Status::stalled;
  change_to_float64();
  return Status::running;
}

void RankSolver::change_to_float64() {
  past_ = info();
  changed_precision_ = true;
  loop_.reset();
  gram32_.reset();
  last_gap_ = kInf;
  start(true);
}

// γ from α, g from γ by float64 values of K, and what follows from them. Both replace what the
// rounds maintained.
void RankSolver::certify_now() {
  LapClock clock;
  state_.gamma = rank_coefficients(problem_, state_.alpha);
  DualProblem expansion;  // its gradient is Kγ
  expansion.points = problem_.points;
  expansion.linear.assign(problem_.points.size(), 0.0);
  expansion.lower.assign(problem_.points.size(), -kInf);
  expansion.upper.assign(problem_.points.size(), kInf);
  expansion.has_equality = false;
  if (is_linear_) {
    exact_linear_gradient(expansion, state_.gamma, data_, settings_.threads, state_.g);
  } else {
    if (!gram64_) gram64_ = make_gram<double>(data_, kernel_, settings_.threads, settings_.simd);
    verification_evaluations_ +=
        exact_gradient(expansion, state_.gamma, *gram64_, settings_.threads, nullptr, state_.g);
  }
  if (loop_) loop_->g_was_replaced();
  certificate_ = certify_rank(problem_, state_, settings_.threads);
  certificate_is_current_ = true;
  clock.lap(seconds_verification_);
}

const RankCertificate& RankSolver::certificate() {
  if (!certificate_is_current_) certify_now();
  return certificate_;
}

std::vector<double> RankSolver::coefficients() const {
  std::vector<double> coef(static_cast<std::size_t>(data_.n), 0.0);
  const std::vector<double> gamma = rank_coefficients(problem_, state_.alpha);
  for (std::size_t i = 0; i < gamma.size(); ++i) coef[problem_.points[i]] = gamma[i];
  return coef;
}

Info RankSolver::info() const {
  Info total = loop_->info();
  total.rounds += past_.rounds;
  total.iterations += past_.iterations;
  total.kernel_evaluations += past_.kernel_evaluations;
  total.cache_hits += past_.cache_hits;
  total.cache_misses += past_.cache_misses;
  total.seconds_selection += past_.seconds_selection;
  total.seconds_block += past_.seconds_block;
  total.seconds_subproblem += past_.seconds_subproblem;
  total.seconds_gradient += past_.seconds_gradient;
  return total;
}

}  // namespace kfu

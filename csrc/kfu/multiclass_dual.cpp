#include "kfu/multiclass_dual.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "kfu/multiclass_linear.h"

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLargestForFloat32 = 1e4;  // of K(i, i)
constexpr double kCurvatureFloor = 1e-10;   // relative to the largest
constexpr double kRoundFraction = 0.9;      // of the tolerance: the check has room for rounding
constexpr double kChunkFraction = 0.1;      // of the largest violation: what a chunk is solved to
constexpr double kBiasFraction = 0.3;       // of the next move of b: what rows are solved to before
constexpr Index kUsualChunk = 1024;
constexpr Index kLargestChunk = 4096;
constexpr Index kStepsPerRow = 50;      // of a chunk, in one round
constexpr Index kIdleRounds = 3;        // rounds that rounding keeps from improving anything
constexpr Index kColumnsAtOnce = 4096;  // of a check: bounds the packed copy of the points
constexpr Index kSmall = 512;           // examples of a problem that is polished
constexpr double kPolished = 1e-11;     // violation it is polished to, if rounding lets it
constexpr Index kPolishStepsPerRow = 200;

// Breaks ties between rows in an order that has nothing to do with that of the data, which may be
// sorted by class.
std::uint32_t scattered(Index i) { return static_cast<std::uint32_t>(i) * 2654435761u; }

std::vector<Index> all_points(Index n) {
  std::vector<Index> points(static_cast<std::size_t>(n));
  std::iota(points.begin(), points.end(), Index{0});
  return points;
}

}  // namespace

MulticlassSolver::MulticlassSolver(const DataView& data, const Kernel& kernel,
                                   MulticlassProblem problem, std::vector<double> B,
                                   std::vector<double> bias, const SolverSettings& settings,
                                   Precision precision)
    : copy_(!is_lookup(kernel) && is_mostly_zero(data)
                ? std::make_unique<SparseCopy>(data, settings.threads)
                : nullptr),
      data_(copy_ ? copy_->view() : data),
      kernel_(kernel),
      problem_(std::move(problem)),
      settings_(settings),
      is_automatic_(precision == Precision::automatic),
      is_linear_(is_plain_linear(kernel)),
      limit_(settings.max_iterations > 0 ? settings.max_iterations
                                         : std::max<Index>(10000000, 100 * problem_.size())),
      max_iterations_(limit_),
      goal_(kRoundFraction * settings.tolerance),
      row_problem_(problem_.kind, problem_.n_classes),
      B_(std::move(B)),
      centre_(std::move(bias)),
      last_gap_(kInf) {
  const std::size_t n = problem_.labels.size(), K = static_cast<std::size_t>(problem_.n_classes);
  const bool is_cold = B_.empty() && centre_.empty();
  if (B_.empty()) B_.assign(n * K, 0.0);
  if (centre_.empty()) centre_.assign(K, 0.0);
  violations_.assign(n, 0.0);
  is_free_.assign(n, 0);
  use_float64(wants_float64(precision));
  G_.assign(n * K, 0.0);
  sums_.assign(K, 0.0);
  if (is_cold) {
    const double margin = margin_of(problem_.kind);
    for (std::size_t i = 0; i < n; ++i) G_[problem_.labels[i] * n + i] = -margin;
    return;
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < K; ++k) sums_[k] += B_[i * K + k];
  if (problem_.has_bias)  // the bias given is the one to go on with: b° + ρs
    for (std::size_t k = 0; k < K; ++k) centre_[k] -= rho_ * sums_[k];
  exact_gradient(G_);
}

// The linear kernel has no rows. Else as in certified_solver.cpp: asked for, or needed for
// polishing, or because values of K are so large that their rounding to float32 drowns the margins.
bool MulticlassSolver::wants_float64(Precision precision) {
  if (is_linear_) return true;
  if (precision != Precision::automatic) return precision == Precision::float64;
  if (settings_.polish && problem_.size() <= kSmall) return true;
  gram32_ = make_gram<float>(data_, kernel_, settings_.threads, settings_.simd);
  std::vector<double> diagonal(problem_.labels.size());
  gram32_->diagonal(diagonal.data());
  const double largest =
      diagonal.empty() ? 0.0 : *std::max_element(diagonal.begin(), diagonal.end());
  return !(largest <= kLargestForFloat32);
}

void MulticlassSolver::use_float64(bool float64) {
  is_float64_ = float64;
  if (chunk_solver_) {
    past_evaluations_ += chunk_solver_->evaluations();
    past_face_steps_ += chunk_solver_->face_steps();
  }
  chunk_solver_.reset();
  const Index K = problem_.n_classes;
  if (float64) {
    gram32_.reset();
    if (!gram64_) gram64_ = make_gram<double>(data_, kernel_, settings_.threads, settings_.simd);
    chunk_solver_ = is_linear_ ? make_linear_chunk(data_, *gram64_, K)
                               : make_multiclass_chunk(*gram64_, K, settings_.cache_bytes);
  } else {
    if (!gram32_) gram32_ = make_gram<float>(data_, kernel_, settings_.threads, settings_.simd);
    chunk_solver_ = make_multiclass_chunk(*gram32_, K, settings_.cache_bytes);
  }
  simd_ = chunk_solver_->simd();
  layout_ = chunk_solver_->layout();
  set_curvature();
}

// A floor serves zero vectors and indefinite kernels: with more curvature than there is, a row's
// optimum is a shorter step that still lowers D. ρ is chosen once.
void MulticlassSolver::set_curvature() {
  curvature_.resize(problem_.labels.size());
  chunk_solver_->diagonal(curvature_.data());
  double largest = 0.0, total = 0.0;
  for (const double value : curvature_) {
    largest = std::max(largest, value);
    total += std::max(value, 0.0);
  }
  if (problem_.has_bias && rho_ == 0.0)
    rho_ = largest > 0.0 ? total / static_cast<double>(problem_.size()) : 1.0;
  const double floor = largest > 0.0 ? kCurvatureFloor * largest : kCurvatureFloor;
  for (double& value : curvature_) value = std::max(value + rho_, floor);
}

MulticlassRow MulticlassSolver::row_at(Index i, const std::vector<double>& G,
                                       std::vector<double>& gathered) const {
  const Index n = problem_.size(), K = problem_.n_classes;
  gathered.resize(static_cast<std::size_t>(K));
  for (Index k = 0; k < K; ++k) gathered[k] = G[k * n + i];
  return {problem_.labels[i], problem_.costs[i], B_.data() + i * K, gathered.data()};
}

std::vector<double> MulticlassSolver::bias() const {
  std::vector<double> b = centre_;
  for (std::size_t k = 0; k < b.size(); ++k) b[k] += rho_ * sums_[k];
  return b;
}

double MulticlassSolver::bias_step() const {
  double largest = 0.0;
  for (const double s : sums_) largest = std::max(largest, rho_ * std::fabs(s));
  return largest;
}

// b° ← b: G, which holds b = b° + ρs, moves by ρs once more.
void MulticlassSolver::move_bias_centre() {
  const Index n = problem_.size();
  for (Index k = 0; k < problem_.n_classes; ++k) {
    const double change = rho_ * sums_[k];
    centre_[k] += change;
    for (Index i = 0; i < n; ++i) G_[k * n + i] += change;
  }
}

Status MulticlassSolver::round() {
  certificate_is_current_ = false;
  LapClock clock;
  const double largest = scan();
  const double step = problem_.has_bias ? bias_step() : 0.0;
  info_.gap = std::max(largest, step);
  clock.lap(info_.seconds_selection);
  if (largest > std::max(goal_, kBiasFraction * step)) {
    if (info_.iterations < max_iterations_) return solve_chunk(largest);
    return is_polishing_ ? check(false) : Status::max_iterations;
  }
  if (step <= goal_) return check(true);
  move_bias_centre();
  return Status::running;
}

// The violation of all rows; returns the largest.
double MulticlassSolver::scan() {
  const Index n = problem_.size();
#pragma omp parallel num_threads(settings_.threads) if (n * problem_.n_classes > 20000)
  {
    std::vector<double> gathered;
#pragma omp for schedule(static)
    for (Index i = 0; i < n; ++i) {
      const MulticlassRow row = row_at(i, G_, gathered);
      violations_[i] = row_problem_.violation(row);
      is_free_[i] = row_problem_.is_free(row);
    }
  }
  return n == 0 ? 0.0 : *std::max_element(violations_.begin(), violations_.end());
}

// Rows of a chunk: asked for, or room for the free rows and as many others. The linear kernel takes
// all rows at once.
Index MulticlassSolver::chunk_limit(Index n_free) const {
  Index limit = settings_.chunk;
  if (limit == 0 && is_linear_) return problem_.size();
  if (limit == 0) limit = std::clamp(n_free + n_free / 4 + 256, kUsualChunk, kLargestChunk);
  return std::min({limit, chunk_solver_->largest_chunk(), problem_.size()});
}

// The most violating rows for half of the chunk, then free rows, then more violating ones.
void MulticlassSolver::choose_chunk() {
  std::vector<Index> violating, free;
  for (Index i = 0; i < problem_.size(); ++i) {
    if (violations_[i] > goal_)
      violating.push_back(i);
    else if (is_free_[i])
      free.push_back(i);
  }
  const Index n_free = std::count(is_free_.begin(), is_free_.end(), char(1));
  const Index limit = chunk_limit(n_free);
  const Index n_violating = static_cast<Index>(violating.size());
  const auto before = [this](Index a, Index b) {
    if (violations_[a] != violations_[b]) return violations_[a] > violations_[b];
    return scattered(a) != scattered(b) ? scattered(a) < scattered(b) : a < b;
  };
  const auto keep_first = [&](std::vector<Index>& rows, Index count) {
    if (count >= static_cast<Index>(rows.size())) return;
    std::nth_element(rows.begin(), rows.begin() + count, rows.end(), before);
    rows.resize(static_cast<std::size_t>(count));
  };
  keep_first(free, std::max(limit - n_violating, limit / 2));
  keep_first(violating, limit - static_cast<Index>(free.size()));
  chunk_ = std::move(violating);
  chunk_.insert(chunk_.end(), free.begin(), free.end());
  // Rows are solved in this order: neighbours in a file are often alike, and undo each other.
  std::sort(chunk_.begin(), chunk_.end(), [](Index a, Index b) {
    return scattered(a) != scattered(b) ? scattered(a) < scattered(b) : a < b;
  });
  info_.chunk = limit;
}

Status MulticlassSolver::solve_chunk(double largest) {
  LapClock clock;
  const Index K = problem_.n_classes;
  choose_chunk();
  before_.clear();
  for (const Index i : chunk_)
    before_.insert(before_.end(), B_.data() + i * K, B_.data() + (i + 1) * K);
  clock.lap(info_.seconds_selection);
  ChunkTask task;
  task.problem = &problem_;
  task.curvature = curvature_.data();
  task.G = G_.data();
  task.offset = rho_;
  task.goal = std::max(0.5 * goal_, kChunkFraction * largest);
  task.max_steps = std::min(max_iterations_ - info_.iterations,
                            kStepsPerRow * static_cast<Index>(chunk_.size()));
  task.threads = settings_.threads;
  info_.iterations += chunk_solver_->solve(chunk_, task, B_.data());
  ++info_.rounds;
  clock.lap(info_.seconds_subproblem);
  const bool improved = add_moves();
  clock.lap(info_.seconds_gradient);
  idle_rounds_ = improved ? 0 : idle_rounds_ + 1;
  return idle_rounds_ < kIdleRounds ? Status::running : check(false);
}

// Carries what the chunk moved to G. Returns whether D fell: by ½⟨move, G before + G after⟩.
bool MulticlassSolver::add_moves() {
  const Index n = problem_.size(), K = problem_.n_classes;
  std::vector<Index> rows;
  std::vector<double> moves;
  for (std::size_t r = 0; r < chunk_.size(); ++r) {
    const double* now = B_.data() + chunk_[r] * K;
    const double* then = before_.data() + static_cast<Index>(r) * K;
    if (std::equal(now, now + K, then)) continue;
    rows.push_back(chunk_[r]);
    for (Index k = 0; k < K; ++k) moves.push_back(now[k] - then[k]);
  }
  const auto slope = [&] {
    double total = 0.0;
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (Index k = 0; k < K; ++k)
        total += moves[static_cast<Index>(r) * K + k] * G_[k * n + rows[r]];
    return total;
  };
  const double slope_before = slope();
  chunk_solver_->add_moves(rows, moves, settings_.threads, G_.data());
  if (problem_.has_bias) {
    for (Index k = 0; k < K; ++k) {
      double change = 0.0;
      for (std::size_t r = 0; r < rows.size(); ++r) change += moves[static_cast<Index>(r) * K + k];
      sums_[k] += change;
      for (Index i = 0; i < n; ++i) G_[k * n + i] += rho_ * change;
    }
  }
  return slope_before + slope() < 0.0;
}

// G from scratch, of float64 values.
void MulticlassSolver::exact_gradient(std::vector<double>& G) {
  const Index n = problem_.size(), K = problem_.n_classes;
  std::vector<Index> support;
  std::vector<double> coef;
  std::fill(sums_.begin(), sums_.end(), 0.0);
  for (Index i = 0; i < n; ++i) {
    const double* row = B_.data() + i * K;
    if (std::all_of(row, row + K, [](double b) { return b == 0.0; })) continue;
    support.push_back(i);
    coef.insert(coef.end(), row, row + K);
    for (Index k = 0; k < K; ++k) sums_[k] += row[k];
  }
  G.assign(static_cast<std::size_t>(n * K), 0.0);
  if (is_linear_) {
    chunk_solver_->add_moves(support, coef, settings_.threads, G.data());
  } else if (!support.empty()) {
    if (!gram64_) gram64_ = make_gram<double>(data_, kernel_, settings_.threads, settings_.simd);
    const std::vector<Index> points = all_points(n);
    const std::unique_ptr<ColumnSet> columns = gram64_->make_columns(std::min(n, kColumnsAtOnce));
    const Index count = static_cast<Index>(support.size());
    for (Index first = 0; first < n; first += kColumnsAtOnce) {
      const Index width = std::min(kColumnsAtOnce, n - first);
      columns->truncate(0);
      columns->assign(0, points.data() + first, width);
      gram64_->accumulate(support.data(), coef.data(), count, K, *columns, 0, width,
                          G.data() + first, n, {});
    }
    verification_evaluations_ += count * n;
  }
  const std::vector<double> b = bias();
  const double margin = margin_of(problem_.kind);
  for (Index k = 0; k < K; ++k)
    for (Index i = 0; i < n; ++i) G[k * n + i] += b[k] - (problem_.labels[i] == k ? margin : 0.0);
}

void MulticlassSolver::certify_now() {
  LapClock clock;
  const Index n = problem_.size(), K = problem_.n_classes;
  exact_gradient(exact_G_);
  const std::vector<double> b = bias();
  Certificate c;
  double sum_of_labels = 0.0, product = 0.0;  // Σ_i B_{i,y_i} and Σ B·(f − m[k = y])
  std::vector<double> gathered;
  for (Index i = 0; i < n; ++i) {
    const MulticlassRow row = row_at(i, exact_G_, gathered);
    c.kkt_gap = std::max(c.kkt_gap, row_problem_.violation(row));
    c.duality_gap += row_problem_.duality_gap(row);
    c.n_usv += row_problem_.is_free(row);
    c.n_sv += std::any_of(row.B, row.B + K, [](double value) { return value != 0.0; });
    sum_of_labels += row.B[row.label];
    for (Index k = 0; k < K; ++k) product += row.B[k] * (row.G[k] - b[k]);
  }
  c.objective = 0.5 * (margin_of(problem_.kind) * sum_of_labels - product);
  if (problem_.has_bias) {
    c.kkt_gap = std::max(c.kkt_gap, bias_step());
    for (Index k = 0; k < K; ++k) c.duality_gap += std::fabs(b[k] * sums_[k]);
  }
  if (!std::isfinite(c.objective)) c.kkt_gap = kInf;  // values of K that overflow prove nothing
  c.kkt_violation = c.kkt_gap;
  certificate_ = c;
  certificate_is_current_ = true;
  clock.lap(seconds_verification_);
}

const Certificate& MulticlassSolver::certificate() {
  if (!certificate_is_current_) certify_now();
  return certificate_;
}

// The rounds are done by their own gradient, or can do no more.
Status MulticlassSolver::check(bool is_done) {
  certify_now();
  idle_rounds_ = 0;
  if (certificate_.kkt_gap > settings_.tolerance) {
    if (!is_polishing_ || goal_ > kPolished) return refine(is_done);
    goal_ = kRoundFraction * settings_.tolerance;  // violations do not fall at every step
    max_iterations_ = limit_;
    return Status::running;
  }
  const Index left = max_iterations_ - info_.iterations;
  if (is_polishing_ || !settings_.polish || problem_.size() > kSmall || !is_float64_ || left <= 0)
    return Status::optimal;
  is_polishing_ = true;
  goal_ = std::min(kPolished, goal_);
  max_iterations_ = info_.iterations + std::min(left, kPolishStepsPerRow * problem_.size());
  G_ = exact_G_;
  return Status::running;
}

Status MulticlassSolver::refine(bool is_done) {
  const bool improves =
      is_done && std::isfinite(certificate_.kkt_gap) && certificate_.kkt_gap <= 0.5 * last_gap_;
  last_gap_ = certificate_.kkt_gap;
  ++refinements_;
  G_ = exact_G_;
  if (improves) return Status::running;
  if (is_float64_ || !is_automatic_) return Status::stalled;
  changed_precision_ = true;
  last_gap_ = kInf;
  use_float64(true);
  return Status::running;
}

Info MulticlassSolver::info() const {
  Info info = info_;
  info.kernel_evaluations = past_evaluations_ + chunk_solver_->evaluations();
  info.reductions = past_face_steps_ + chunk_solver_->face_steps();
  info.n_active = problem_.size();
  return info;
}

}  // namespace kfu

// Follows the solution of a ParametricProblem as t moves: an active-set method that never leaves
// optimality.
//
// A stretch. Let A be the free variables. With ˙ for the derivative by the progress s (t moves
// by +1 or −1 with it), a free variable keeps F ± kink = θ of its group, so
//
//   K_AA β̇_A − E θ̇ = −linear˙_A ∓ kink˙_A − K_AB β̇_B,     Eᵀβ̇_A = total˙ − Σ_B β̇_B,
//
// where B are bounded variables whose bound moves. Then F˙ = Kβ̇ + linear˙ for all variables. A
// stretch ends where a free variable meets a bound or its kink, or where the slack of a bounded one
// (F + kink − θ ≥ 0 if it can grow, θ − F + kink ≥ 0 if it can fall) vanishes.
//
// Degeneracy, without a ridge:
//  - Tests look at the direction: a slack counts only if it falls. Steps of length zero are
//  allowed,
//    so several events at one t are taken one after the other; they make one breakpoint.
//  - A variable that would make K_AA (with its border) singular comes with a direction v, Kv = 0
//  and
//    Eᵀv = 0, in which nothing but β changes. The path moves along v until a variable meets a
//    bound; that one leaves, and the new one enters (or has crossed to its other bound). So equal
//    points, opposite equal points and kernels of low rank need nothing special.
//  - Among events at the same s up to rounding, the steepest is taken (Harris' rule); after many
//    steps of length zero the least index, which does not cycle; after many more the slacks of tied
//    variables are given different tiny values until the next correction.
//  - A variable that enters and leaves at the same t does so for rounding in its slope; it is left
//    alone until t moves.
//  - A group without free variables has an interval of θ. The end comes where the interval closes,
//    or at once if the equality demands a change.
//
// Corrections. The gradient is recomputed from β every so often. What it violates is taken as a
// change of the linear term under which the present β is optimal, and this change is taken back
// along a path of its own, at the same t. A start that is only nearly optimal (from the SMO solver)
// is made exact in the same way.
#pragma once

#include <memory>
#include <vector>

#include "kfu/free_factor.h"
#include "kfu/kernel_rows.h"
#include "kfu/parametric_problem.h"
#include "kfu/smo_loops.h"

namespace kfu {

struct ParametricSettings {
  int threads = 1;
  bool stop_without_bound = false;          ///< end where no variable is at a bound other than zero
  bool records = true;                      ///< keep breakpoints, events and crossings
  std::vector<signed char> labels;          ///< ±1 of the variables, to count wrong signs; or empty
  std::vector<signed char> watched_labels;  ///< the same of the watched points
};

enum class PathStatus { running, done, no_bound, infeasible, indefinite, stuck };

/// The state just after the events at one value of t.
struct Breakpoint {
  double t;
  double theta[kMostGroups];
  double objective;
  double kkt;
  Index n_free;
  Index n_bound;  ///< at a bound other than zero
  Index n_null;   ///< at zero
  Index errors[2];
  Index end_of_events;  ///< one past the last of its events
};

struct PlaceChange {
  Index item;
  Place place;
};

struct SignChange {
  double t;
  Index row;
  int set;  ///< 0: the variables, 1: the watched points
  int change;
};

class ParametricRun {
 public:
  /// `beta` is (nearly) optimal at t: bounds hold up to rounding. Makes it exact.
  ParametricRun(std::shared_ptr<KernelRows> rows, ParametricProblem problem,
                const std::vector<double>& beta, double t, const ParametricSettings& settings,
                const Lapack& lapack);

  /// Follows the path towards `stop` for at most `most_steps` more breakpoints.
  PathStatus advance(double stop, Index most_steps);

  /// Leaves variables out: closes their boxes and follows the solution there, at the same t, while
  /// the totals change by so much (null: they stay).
  PathStatus close_boxes(const Index* items, Index count, const double* total_change);

  Index n_free() const { return static_cast<Index>(free_.size()); }
  double t() const { return t_; }
  PathStatus status() const { return status_; }
  const std::vector<double>& beta() const { return beta_; }
  const std::vector<Place>& places() const { return place_; }
  double theta(int g) const { return theta_[g]; }
  /// F without the linear term: (K + ridge)β, of the variables, then Kβ of the watched points.
  double output(Index k) const;
  const std::vector<Breakpoint>& breakpoints() const { return breakpoints_; }
  const std::vector<PlaceChange>& events() const { return events_; }
  const std::vector<SignChange>& sign_changes() const { return sign_changes_; }
  const std::vector<Place>& first_places() const { return first_places_; }
  Index steps() const { return steps_; }
  Index corrections() const { return corrections_; }
  Index restarts() const { return restarts_; }
  double drift() const { return drift_; }  ///< largest error of the gradient a correction found
  /// How often the factor of the free block was computed afresh because a residual was too large.
  Index refactorings() const { return refactorings_; }
  /// Largest residual of a direction, relative to the terms of its sums, that was gone on with.
  double residual() const { return residual_; }
  double theta_low(int g) const;
  double theta_high(int g) const;

 private:
  friend class ParametricTableau;  // reads the solution
  friend class ParametricClosing;

  enum class Action { none, enter_up, enter_down, leave_high, leave_low };
  struct Event {
    double length = 0.0;
    Index item = -1;  ///< a variable; for leaving its place in the free list
    Action action = Action::none;
  };

  struct Candidate {
    double length;
    double strength;
    Index item;
    Action action;
  };

  struct Residual {
    double worst = 0.0;
    double scale = 0.0;  ///< of what the free variables have to follow
    double terms = 0.0;  ///< of the sums that it is the rest of
  };

  // Start and correction.
  void find_places();
  void recompute();
  PathStatus correct();
  PathStatus correct_until_exact();
  PathStatus correct_halfway(double stop, int way);
  void perturb();

  // One stretch.
  PathStatus stretch(double limit, double* length);
  PathStatus direction();
  void multipliers(const double* right, double* mu) const;
  void solve_direction();
  void add_free_rows(const std::vector<double>& v);
  void find_gradient_rate();
  Residual residual_of_direction();
  void refine_direction();
  bool refactor();
  PathStatus direction_from_here();
  PathStatus enter_into_empty_group();
  Event next_event(double limit);
  void consider_empty_groups(double limit, Event& event);
  void move(double length);
  bool line_of_end(Index i, int g, bool up, double* value, double* slope) const;
  void find_bends(int g, bool up, double length, std::vector<double>& back) const;
  double threshold(double back) const;
  void count_signs(double before_t, double length);
  void count_signs_of_piece(double before_t, double length, double from, double to,
                            double threshold, double threshold_rate);
  PathStatus apply(const Event& event);

  PathStatus enter(Index i, int sign);
  void leave(Index at, bool high);
  void leave_with_last(int g);
  void leave_if_all_at_ends(int g);
  int end_of(Index i) const;
  Index blocking(Index i, int sign, const std::vector<double>& v, double* length);
  void insert_free(Index i, double pivot);
  void set_place(Index i, Place place);
  void put(Index i, Place place);

  // Rates of what moves now.
  void use_path_rates(int direction);
  void clear_rates();
  void rates_changed();
  double right_of(Index i) const;

  double offset(Index i, bool up) const;
  double free_offset(Index i) const;
  double end_high(Index i) const;
  double end_low(Index i) const;
  bool has_kink() const { return !kink_.empty(); }
  double kink_at(Index i) const { return kink_.empty() ? 0.0 : kink_[i]; }
  /// No kink and no second group: the slack of a bounded variable is side·(F − θ).
  bool is_plain() const { return kink_.empty() && problem_.group.empty(); }
  double rate(const std::vector<double>& rates, Index i) const {
    return rates.empty() ? 0.0 : rates[i];
  }
  int group(Index i) const { return problem_.has_equality ? problem_.group_of(i) : -1; }
  double theta_of(Index i) const {
    return problem_.has_equality ? theta_[problem_.group_of(i)] : 0;
  }
  void add_rows(const Index* items, const double* coef, Index count, double* out) const;
  void settle_theta();
  void record(bool is_new);
  double worst_violation() const;
  bool takes_least_index() const {
    return zero_steps_ > 2 * (static_cast<Index>(free_.size()) + 25);
  }

  std::shared_ptr<KernelRows> rows_;
  ParametricProblem problem_;
  ParametricSettings settings_;
  const SmoLoops<double, double>& loops_;
  Index n_;
  Index length_;  // variables and watched points
  double t_;
  PathStatus status_ = PathStatus::running;

  std::vector<double> beta_;
  std::vector<double> F_;  // of the variables, then outputs of the watched points
  std::vector<Place> place_;
  std::vector<char> fixed_;   // lower = upper: never free
  std::vector<double> side_;  // 1 at the lower bound, −1 at the upper, 0 elsewhere and of the fixed
  double theta_[kMostGroups] = {0.0, 0.0};
  std::vector<double> linear_, lower_, upper_, kink_;  // now

  std::vector<double> linear_rate_, lower_rate_, upper_rate_, kink_rate_;  // empty: zero
  double total_rate_[kMostGroups] = {0.0, 0.0};
  std::vector<double> pull_;  // K times the rates of moving bounded variables; empty: none move
  double pull_total_[kMostGroups] = {0.0, 0.0};
  int t_direction_ = 0;  // of t with the progress; 0 in a correction

  std::vector<Index> free_;
  std::vector<HeldRow> held_;             // the rows of the free variables,
  std::vector<const double*> free_rows_;  // and where they are
  FreeFactor factor_;
  double border_;  // c of FreeFactor
  std::vector<double> F_rate_, beta_rate_, scratch_;
  double theta_rate_[kMostGroups] = {0.0, 0.0};
  Index n_free_of_[kMostGroups] = {0, 0};

  std::vector<Candidate> candidates_;
  std::vector<Index> entered_here_, barred_;  // since t last moved
  double largest_value_ = 0.0;                // of the diagonal
  double slack_tolerance_ = 0.0, beta_tolerance_ = 0.0, output_scale_ = 1.0;
  Index zero_steps_ = 0, steps_ = 0, corrections_ = 0, restarts_ = 0, refactorings_ = 0;
  Index until_correction_ = 0, correction_interval_ = 64;
  double drift_ = 0.0, residual_ = 0.0, corrected_at_ = 0.0;

  std::vector<Place> first_places_;
  std::vector<Breakpoint> breakpoints_;
  std::vector<PlaceChange> events_;
  std::vector<SignChange> sign_changes_;
  std::vector<signed char> wrong_;
  Index n_wrong_[2] = {-1, -1};
};

}  // namespace kfu

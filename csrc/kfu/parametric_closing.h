// Leaves rows out of a solution, one set of variables after the other, by its tableau.
//
// The boxes of the variables P close: β_P goes to zero at the rate −β_P, s from 0 to 1, while the
// totals change at a given rate τ. Let D be the variables whose place has changed on the way,
// together with the free ones of P: their v (parametric_tableau.h) is given, and their u follows,
//
//   T_DD u˙_D = v˙_D − T_DP u˙_P − T_Dτ τ,      v˙ = T_·D u˙_D + T_·P u˙_P + T_·τ τ,
//
// v˙_D = −β of the free ones of P and zero of the others. A stretch ends where a v outside of D or
// a u inside meets an end; its variable joins D or leaves it. The inverse of T_DD is kept and
// bordered or cut down by one; its pivots are positive (the answer of x to β, or of β to x, of one
// variable under the present places), and one that is not clearly so tells that a variable depends
// on those that are free or that a group has lost its last free variable.
//
// Those rare cases, ways of very many changes and results that are not seen to be optimal (ends,
// totals, ParametricTableau::mismatch) are not decided here: close() says so, and
// ParametricRun::close_boxes, which knows degeneracy, takes the same way by itself.
#pragma once

#include <vector>

#include "kfu/parametric_tableau.h"

namespace kfu {

class ParametricClosing {
 public:
  explicit ParametricClosing(const ParametricTableau& tableau);

  /// Whether the way was found. `total_change` may be null.
  bool close(const Index* items, Index count, const double* total_change);

  /// Kβ of the first variable that was closed, and θ.
  double output() const;
  double theta(int g) const {
    return g < tableau_.groups() ? following_[tableau_.size() + g] : 0.0;
  }
  /// Changes of state on the last way.
  Index steps() const { return steps_; }

 private:
  struct Changed {
    Index position;
    double rate;       // of v
    double low, high;  // ends of u
    const double* column;
  };
  struct Event {
    double length;
    Index place = -1;  // in changed_, or position
    bool is_changed = false;
    bool is_high = false;
  };

  void start(const Index* items, Index count, const double* total_change);
  bool join(Index position, double rate, double low, double high);
  bool drop(Index place);
  void find_rates();
  Event next_event(double limit) const;
  void move(double length);
  bool apply(const Event& event);
  bool has_free_inside() const;
  bool is_optimal(const double* total_change) const;
  double least_pivot(Index position, bool is_joining) const;

  const ParametricTableau& tableau_;
  const SmoLoops<double, double>& loops_;
  std::vector<double> following_, given_, low_, high_, rate_;  // v, u, ends of v, v˙
  std::vector<Place> place_;
  std::vector<Index> closed_;
  std::vector<Changed> changed_;
  std::vector<double> inverse_;  // of T_DD, by rows, changed_.size() wide
  std::vector<double> given_rate_, right_, left_, grown_;
  std::vector<Buffer<double>> spares_;
  std::vector<const double*> driving_;  // columns of P and of totals, and their rates
  std::vector<double> driving_rate_;
  std::vector<const double*> columns_;
  std::vector<double> coefs_;
  bool is_regular_ = true;
  Index steps_ = 0;
};

}  // namespace kfu

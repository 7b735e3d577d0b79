// The gradient mended, where rows are coarse; see dual_solver.h for the contract.
//
// With e_jk what a coarse row is off at K(j, k), F_k is off by Σ_j owed_j e_jk, owed_j being what
// β_j gained while its row was kept (values that are computed enter F as they are). The errors e
// are rounding errors, as good as independent: the sum is of the size of kCoarseUnit / √12 times
// the norm of owed, and the gap of F that so many variables have been levelled to may be off by
// some eight times that. While β settles, what it has still to go falls as fast as the gap, or
// faster: once F has been mended, the error stays a small part of the gap for long. On case b of
// the benchmarks the gap is off by 6e-3 in the end if F is left alone; mended once, at a gap of
// 0.018, from half a kernel value for each pair of support vectors, it is what the certificate
// finds. Where that fails (K nearly singular, and the gap small beside the way to go), rows are
// kept as they are from then on.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kfu/dual_solver.h"
#include "kfu/weighted_sums.h"

namespace kfu {

namespace {

const double kUsualError = kCoarseUnit / std::sqrt(12.0);  // of a value
constexpr double kLargest = 4.0;    // error among many columns, as a multiple of the usual one
constexpr double kRough = 0.2;      // part of the gap that F may be off by on the way,
constexpr double kRoughEnd = 0.1;   // and of the tolerance, if that is more
constexpr double kNear = 2.0;       // gaps from the threshold within which a variable may matter
constexpr double kPaying = 1.25;    // the price of the lost part of a value, in values
constexpr double kLeastFall = 4.0;  // of the gap from one time to the next, for rows to stay coarse

}  // namespace

// Σ_j weights_j K(j, k) over all places j, for the places k that are wanted. K is symmetric.
class PointSums {
 public:
  PointSums(const std::vector<double>& weights, const std::vector<Index>& wanted)
      : weights_(weights), wanted_(wanted) {
    std::vector<char> is_wanted(weights.size(), 0);
    for (const Index k : wanted) is_wanted[k] = 1;
    for (Index k = 0; k < static_cast<Index>(weights.size()); ++k) {
      if (weights[k] != 0.0)
        (is_wanted[k] ? members_ : apart_).push_back(k);
      else if (is_wanted[k])
        others_.push_back(k);
    }
  }

  const std::vector<Index>& wanted() const { return wanted_; }

  /// How many values of K it takes.
  double values() const {
    const auto m = static_cast<double>(members_.size()), o = static_cast<double>(others_.size());
    return 0.5 * m * m + m * o + static_cast<double>(apart_.size()) * (m + o);
  }

  /// By wanted place, of values or of that part of them.
  template <class T>
  std::vector<double> form(const Gram<T>& gram, const std::vector<Index>& points, int threads,
                           Part part) const {
    const WeightedPoints members = weighted(members_, points), apart = weighted(apart_, points);
    std::vector<double> sums(members_.size(), 0.0), other_sums(others_.size(), 0.0);
    std::vector<Index> other_points;
    for (const Index k : others_) other_points.push_back(points[k]);
    symmetric_sums(members, gram, threads, sums, part);
    add_columns(apart, gram, members.points, sums, part);
    add_columns(members, gram, other_points, other_sums, part);
    add_columns(apart, gram, other_points, other_sums, part);
    std::vector<double> by_place(weights_.size(), 0.0), by_wanted;
    for (std::size_t c = 0; c < sums.size(); ++c) by_place[members_[c]] = sums[c];
    for (std::size_t c = 0; c < other_sums.size(); ++c) by_place[others_[c]] = other_sums[c];
    for (const Index k : wanted_) by_wanted.push_back(by_place[k]);
    return by_wanted;
  }

 private:
  WeightedPoints weighted(const std::vector<Index>& places,
                          const std::vector<Index>& points) const {
    WeightedPoints found;
    for (const Index k : places) found.add(points[k], weights_[k]);
    return found;
  }

  const std::vector<double>& weights_;
  const std::vector<Index>& wanted_;
  std::vector<Index> members_, others_, apart_;  // places: both, wanted only, weighted only
};

// What F may be off by, as far as a gap is concerned.
template <class T>
double DualSolver<T>::roughness() const {
  return kLargest * kUsualError * std::sqrt(std::max(owed_squares_, 0.0));
}

template <class T>
bool DualSolver<T>::is_too_rough(double gap) const {
  return roughness() > std::max(kRough * gap, kRoughEnd * settings_.tolerance);
}

template <class T>
bool DualSolver<T>::is_met(double gap) const {
  return gap + roughness() <= settings_.tolerance;
}

template <class T>
void DualSolver<T>::refresh_if_rough(GroupEnds& ends) {
  if (!is_too_rough(info_.gap)) return;
  refresh(ends);
  if (info_.gap * kLeastFall > renewed_gap_ && !rows_are_shared_)
    row_tier_->recut(n_, RowForm::floating);
  renewed_gap_ = info_.gap;
  ends = scan();
  info_.gap = ends.gap(n_groups_, has_equality_);
}

template <class T>
void DualSolver<T>::renew() {
  finish_deferred();
  if (ever_owed_ > exact_at_) refresh(scan());
}

// What β has gained since F was exact, by place.
template <class T>
std::vector<double> DualSolver<T>::gained_since_exact() const {
  std::vector<double> gained = beta_;
  for (Index k = 0; k < n_ && !exact_beta_.empty(); ++k) gained[k] -= exact_beta_[variable_[k]];
  return gained;
}

// F of the places that `scratch` wants, whose weights are what β has gained since F was exact.
template <class T>
void DualSolver<T>::form_anew(const PointSums& scratch, const std::vector<double>& gained) {
  const std::vector<double> sums = scratch.form(gram_, point_, settings_.threads, Part::whole);
  for (std::size_t c = 0; c < sums.size(); ++c) {
    const Index k = scratch.wanted()[c], variable = variable_[k];
    F_[k] = (exact_F_.empty() ? linear_[k] : exact_F_[variable]) + ridge_[k] * gained[k] + sums[c];
    renewed_at_[variable] = ever_owed_;
  }
  full_row_evaluations_ += static_cast<Index>(scratch.values());
}

// They are few: what has been away is mostly far from the threshold. They go on to miss some of
// what is owed, which is not theirs to be paid.
template <class T>
bool DualSolver<T>::mend_returned(const GroupEnds& ends) {
  if (returned_squares_ == 0.0) return false;
  const double error = 2.0 * kLargest * kUsualError * std::sqrt(returned_squares_);
  const double near = kNear * std::max(info_.gap, settings_.tolerance) + error;
  std::vector<Index> found;
  for (Index k = 0; k < n_active_; ++k) {
    const Index variable = variable_[k];
    if (!misses_some_[variable] || renewed_at_[variable] == ever_owed_) continue;
    const double f = F_[k] - ends.threshold(static_cast<int>(group_[k]), has_equality_);
    if (std::min(f + up_mask_[k], -(f + low_mask_[k])) <= near) found.push_back(k);
  }
  if (found.empty()) return false;
  const std::vector<double> gained = gained_since_exact();
  form_anew(PointSums(gained, found), gained);
  renewed_beta_ = beta();
  count_evaluations();
  return true;
}

// F of the active variables that may matter: the support, what owes or has moved, and what is near
// the threshold, or not so far from it that the certificate will see that. Either what the rows
// were short of is paid; or F is formed from scratch, which is what β has gained since F was exact,
// times K: for those that have been away and not received all that is owed, and for all where that
// takes fewer values.
template <class T>
void DualSolver<T>::refresh(const GroupEnds& ends) {
  const std::vector<double> gained = gained_since_exact();
  std::vector<double> owed(static_cast<std::size_t>(n_));
  for (Index k = 0; k < n_; ++k) owed[k] = owed_[variable_[k]];
  const double near = kNear * info_.gap + kCoarseError * (ever_owed_ - exact_at_);
  std::vector<Index> payable, anew, all;
  for (Index k = 0; k < n_active_; ++k) {
    const double f = F_[k] - ends.threshold(static_cast<int>(group_[k]), has_equality_);
    const bool is_near = std::min(f + up_mask_[k], -(f + low_mask_[k])) <= near;
    if (beta_[k] == 0.0 && gained[k] == 0.0 && owed[k] == 0.0 && !is_near) continue;
    (misses_some_[variable_[k]] ? anew : payable).push_back(k);
    all.push_back(k);
  }
  const PointSums debts(owed, payable), part(gained, anew), whole(gained, all);
  const bool pays = kPaying * debts.values() + part.values() < whole.values();
  if (pays) {
    const std::vector<double> sums = debts.form(gram_, point_, settings_.threads, Part::lost);
    for (std::size_t c = 0; c < payable.size(); ++c) F_[payable[c]] += sums[c];
  }
  form_anew(pays ? part : whole, gained);
  full_row_evaluations_ += static_cast<Index>(pays ? debts.values() : 0.0);
  std::fill(misses_some_.begin(), misses_some_.end(), 1);
  for (const Index k : all) {
    misses_some_[variable_[k]] = 0;
    renewed_at_[variable_[k]] = ever_owed_;
  }
  most_squares_ = std::max(most_squares_, owed_squares_);
  owed_squares_ = 0.0;
  std::fill(owed_.begin(), owed_.end(), 0.0);
  renewed_beta_ = beta();
  extrapolation_.forget();
  count_evaluations();
  ++info_.renewals;
}

// F is exact for all variables, up to errors that the caller knows.
template <class T>
void DualSolver<T>::note_exact(const std::vector<double>& F) {
  std::fill(renewed_at_.begin(), renewed_at_.end(), ever_owed_);
  std::fill(owed_.begin(), owed_.end(), 0.0);
  std::fill(misses_some_.begin(), misses_some_.end(), 0);
  owed_squares_ = most_squares_ = returned_squares_ = 0.0;
  exact_at_ = ever_owed_;
  renewed_beta_.clear();
  renewed_gap_ = std::numeric_limits<double>::infinity();
  if (owed_.empty()) return;
  exact_beta_ = beta();
  exact_F_ = F;
}

// Fixed: values are the same each time they are used. Coarse: Σ|owed| at any time is at most what
// was ever owed.
template <class T>
std::vector<double> DualSolver<T>::rounding_errors(double moved) const {
  const double of_fixed = row_tier_->form() == RowForm::fixed ? kFixedError * moved : 0.0;
  std::vector<double> errors(static_cast<std::size_t>(n_), of_fixed);
  for (Index v = 0; v < n_; ++v) errors[v] += kCoarseError * (ever_owed_ - renewed_at_[v]);
  return errors;
}

template <class T>
double DualSolver<T>::usual_rounding() const {
  return kUsualError * std::sqrt(std::max(usual_squares(), returned_squares_));
}

// Σ owed², now or before F was last mended.
template <class T>
double DualSolver<T>::usual_squares() const {
  return std::max(most_squares_, owed_squares_);
}

template double DualSolver<float>::roughness() const;
template bool DualSolver<float>::is_too_rough(double) const;
template bool DualSolver<float>::is_met(double) const;
template void DualSolver<float>::refresh_if_rough(GroupEnds&);
template void DualSolver<float>::renew();
template void DualSolver<float>::refresh(const GroupEnds&);
template void DualSolver<float>::note_exact(const std::vector<double>&);
template std::vector<double> DualSolver<float>::rounding_errors(double) const;
template double DualSolver<float>::usual_rounding() const;
template double DualSolver<float>::usual_squares() const;
template std::vector<double> DualSolver<float>::gained_since_exact() const;
template void DualSolver<float>::form_anew(const PointSums&, const std::vector<double>&);
template bool DualSolver<float>::mend_returned(const GroupEnds&);
template double DualSolver<double>::roughness() const;
template bool DualSolver<double>::is_too_rough(double) const;
template bool DualSolver<double>::is_met(double) const;
template void DualSolver<double>::refresh_if_rough(GroupEnds&);
template void DualSolver<double>::renew();
template void DualSolver<double>::refresh(const GroupEnds&);
template void DualSolver<double>::note_exact(const std::vector<double>&);
template std::vector<double> DualSolver<double>::rounding_errors(double) const;
template double DualSolver<double>::usual_rounding() const;
template double DualSolver<double>::usual_squares() const;
template std::vector<double> DualSolver<double>::gained_since_exact() const;
template void DualSolver<double>::form_anew(const PointSums&, const std::vector<double>&);
template bool DualSolver<double>::mend_returned(const GroupEnds&);

}  // namespace kfu

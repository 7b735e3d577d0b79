// The gradient formed anew, where rows are coarse; see dual_solver.h for the contract.
//
// With e_jk what a coarse row is off at K(j, k), F_k is off by Σ_j owed_j e_jk, owed_j being what
// β_j gained while its row was kept (values that are computed enter F as they are). The errors e
// are rounding errors, as good as independent: the sum is of the size of kCoarseUnit / √12 times
// the norm of owed, and the gap of F that so many variables have been levelled to may be off by
// some eight times that. While β settles, what it has still to go falls as fast as the gap, or
// faster: once F has been formed anew, the error stays a small part of the gap for long. On case b
// of the benchmarks F is off by 6e-3 in the end if it is left alone; formed anew at a gap of 0.018,
// from half a kernel value for each pair of support vectors, it is off by 2e-5. Where that fails (K
// nearly singular, and the gap small beside the way to go), rows are kept as they are from then on.
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
constexpr double kRoughEnd = 0.15;  // and of the tolerance, if that is more
constexpr double kNear = 2.0;       // gaps from the threshold within which a variable may matter
constexpr double kLeastFall = 4.0;  // of the gap from one time to the next, for rows to stay coarse

}  // namespace

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
  if (owed_squares_ > 0.0) refresh(scan());
}

// F of the active variables that may matter: what has moved, the support, and what is near the
// threshold, or not so far from it that the certificate will see that. What β has gained since F
// was exact is all that is multiplied with K.
template <class T>
void DualSolver<T>::refresh(const GroupEnds& ends) {
  const auto gained = [this](Index k) {
    return beta_[k] - (exact_beta_.empty() ? 0.0 : exact_beta_[variable_[k]]);
  };
  WeightedPoints moved, moved_away;  // active variables, and dropped ones
  std::vector<Index> places, others, points;
  const double near = kNear * info_.gap + kCoarseError * ever_owed_;
  for (Index k = 0; k < n_; ++k) {
    const double gain = gained(k);
    if (k >= n_active_) {
      if (gain != 0.0) moved_away.add(point_[k], gain);
      continue;
    }
    if (gain != 0.0) {
      moved.add(point_[k], gain);
      places.push_back(k);
      continue;
    }
    const double f = F_[k] - ends.threshold(static_cast<int>(group_[k]), has_equality_);
    if (beta_[k] == 0.0 && std::min(f + up_mask_[k], -(f + low_mask_[k])) > near) continue;
    others.push_back(k);
    points.push_back(point_[k]);
  }
  std::vector<double> sums(places.size(), 0.0), other_sums(others.size(), 0.0);
  full_row_evaluations_ += symmetric_sums(moved, gram_, settings_.threads, sums);
  full_row_evaluations_ += add_columns(moved_away, gram_, moved.points, sums);
  full_row_evaluations_ += add_columns(moved, gram_, points, other_sums);
  full_row_evaluations_ += add_columns(moved_away, gram_, points, other_sums);
  const auto put = [&](Index k, double sum) {
    const Index variable = variable_[k];
    F_[k] = (exact_F_.empty() ? linear_[k] : exact_F_[variable]) + ridge_[k] * gained(k) + sum;
    renewed_at_[variable] = ever_owed_;
  };
  for (std::size_t c = 0; c < places.size(); ++c) put(places[c], sums[c]);
  for (std::size_t c = 0; c < others.size(); ++c) put(others[c], other_sums[c]);
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
  owed_squares_ = most_squares_ = 0.0;
  renewed_beta_.clear();
  renewed_gap_ = std::numeric_limits<double>::infinity();
  if (row_tier_->form() != RowForm::coarse) return;
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
  return kUsualError * std::sqrt(std::max(most_squares_, owed_squares_));
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
template double DualSolver<double>::roughness() const;
template bool DualSolver<double>::is_too_rough(double) const;
template bool DualSolver<double>::is_met(double) const;
template void DualSolver<double>::refresh_if_rough(GroupEnds&);
template void DualSolver<double>::renew();
template void DualSolver<double>::refresh(const GroupEnds&);
template void DualSolver<double>::note_exact(const std::vector<double>&);
template std::vector<double> DualSolver<double>::rounding_errors(double) const;
template double DualSolver<double>::usual_rounding() const;

}  // namespace kfu

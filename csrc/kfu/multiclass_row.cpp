#include "kfu/multiclass_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double upper_of(const MulticlassRow& row, Index k) { return k == row.label ? row.cost : 0.0; }

}  // namespace

RowProblem::RowProblem(MulticlassKind kind, Index n_classes)
    : kind_(kind), n_classes_(n_classes), is_capped_(static_cast<std::size_t>(n_classes)) {
  breakpoints_.reserve(static_cast<std::size_t>(2 * n_classes));
}

double RowProblem::violation(const MulticlassRow& row) const {
  if (row.cost <= 0.0) return 0.0;
  if (kind_ == MulticlassKind::crammer_singer) {
    double high = -kInf, low = kInf;
    for (Index k = 0; k < n_classes_; ++k) {
      high = std::max(high, row.G[k]);
      if (row.B[k] < upper_of(row, k)) low = std::min(low, row.G[k]);
    }
    return std::max(0.0, high - low);
  }
  double worst = 0.0;
  for (Index k = 0; k < n_classes_; ++k) {
    if (k == row.label) continue;
    const double g = row.G[row.label] - row.G[k];
    if (-row.B[k] < row.cost) worst = std::max(worst, -g);
    if (row.B[k] < 0.0) worst = std::max(worst, g);
  }
  return worst;
}

double RowProblem::duality_gap(const MulticlassRow& row) const {
  double gap = 0.0;
  if (kind_ == MulticlassKind::crammer_singer) {
    const double high = *std::max_element(row.G, row.G + n_classes_);
    for (Index k = 0; k < n_classes_; ++k) gap += (upper_of(row, k) - row.B[k]) * (high - row.G[k]);
    return gap;
  }
  for (Index k = 0; k < n_classes_; ++k) {
    if (k == row.label) continue;
    const double g = row.G[row.label] - row.G[k], alpha = -row.B[k];
    gap += g > 0.0 ? alpha * g : (alpha - row.cost) * g;
  }
  return gap;
}

Index RowProblem::face(const MulticlassRow& row, char* is_in_face) const {
  const bool is_shared = kind_ == MulticlassKind::crammer_singer;
  Index size = 0;
  for (Index k = 0; k < n_classes_; ++k) {
    const bool is_inside = is_shared ? row.B[k] < upper_of(row, k)
                                     : k == row.label || (row.B[k] < 0.0 && -row.B[k] < row.cost);
    is_in_face[k] = is_inside;
    size += is_inside;
  }
  if (size > 1 && row.cost > 0.0) return size;
  std::fill(is_in_face, is_in_face + n_classes_, char(0));
  return 0;
}

bool RowProblem::is_free(const MulticlassRow& row) const {
  if (row.cost <= 0.0) return false;
  if (kind_ == MulticlassKind::crammer_singer) {
    Index below = 0;  // one below its bound is a corner: the others then give its value
    for (Index k = 0; k < n_classes_; ++k) below += row.B[k] < upper_of(row, k);
    return below > 1;
  }
  for (Index k = 0; k < n_classes_; ++k)
    if (k != row.label && row.B[k] < 0.0 && -row.B[k] < row.cost) return true;
  return false;
}

void RowProblem::solve(const MulticlassRow& row, double curvature, double* B_out) {
  double size = 0.0;
  for (Index k = 0; k < n_classes_; ++k) size += std::fabs(row.G[k]);
  if (row.cost <= 0.0)
    std::fill(B_out, B_out + n_classes_, 0.0);
  else if (!std::isfinite(size + curvature))  // values of K that overflowed: the row stays
    std::copy(row.B, row.B + n_classes_, B_out);
  else if (kind_ == MulticlassKind::crammer_singer)
    solve_crammer_singer(row, curvature, B_out);
  else
    solve_weston_watkins(row, curvature, B_out);
}

void RowProblem::solve_crammer_singer(const MulticlassRow& row, double curvature, double* B_out) {
  std::fill(is_capped_.begin(), is_capped_.end(), char(0));
  double g = 0.0;
  for (bool grows = true; grows;) {
    double sum = 0.0;
    Index n_free = 0;
    for (Index k = 0; k < n_classes_; ++k) {
      if (is_capped_[k]) {
        sum -= curvature * (upper_of(row, k) - row.B[k]);
      } else {
        sum += row.G[k];
        ++n_free;
      }
    }
    g = sum / static_cast<double>(n_free);
    grows = false;
    for (Index k = 0; k < n_classes_ && n_free > 1; ++k) {
      if (is_capped_[k] || g - row.G[k] < curvature * (upper_of(row, k) - row.B[k])) continue;
      is_capped_[k] = 1;
      grows = true;
      --n_free;
    }
  }
  double total = 0.0, widest = -1.0;
  Index roomy = -1;
  for (Index k = 0; k < n_classes_; ++k) {
    const double upper = upper_of(row, k);
    B_out[k] = is_capped_[k] ? upper : std::min(upper, row.B[k] + (g - row.G[k]) / curvature);
    total += B_out[k];
    if (!is_capped_[k] && upper - B_out[k] > widest) widest = upper - B_out[k], roomy = k;
  }
  // What rounding left of the sum goes where it fits.
  B_out[roomy] = std::min(upper_of(row, roomy), B_out[roomy] - total);
}

void RowProblem::solve_weston_watkins(const MulticlassRow& row, double curvature, double* B_out) {
  breakpoints_.clear();
  double constant = 0.0;  // the right-hand side is constant − n_free·T; all at c for T → −∞
  for (Index k = 0; k < n_classes_; ++k) {
    if (k == row.label) continue;
    const double g = row.G[row.label] - row.G[k], alpha = -row.B[k];
    const double rise = curvature * (row.cost - alpha), fall = curvature * alpha;
    constant += rise;
    breakpoints_.push_back({-g - rise, -g - rise, +1});
    breakpoints_.push_back({-g + fall, g - fall, -1});
  }
  std::sort(breakpoints_.begin(), breakpoints_.end(),
            [](const Breakpoint& a, const Breakpoint& b) { return a.at < b.at; });
  Index n_free = 0;
  for (const Breakpoint& next : breakpoints_) {
    if (constant - static_cast<double>(n_free + 1) * next.at <= 0.0) break;
    constant += next.jump;
    n_free += next.free;
  }
  const double T = constant / static_cast<double>(n_free + 1);
  double total = 0.0;
  const double G_label = row.G[row.label];
  for (Index k = 0; k < n_classes_; ++k) {
    if (k == row.label) continue;
    const double alpha = -row.B[k], move = row.G[k] - G_label - T;
    double moved = alpha + move / curvature;
    if (move >= curvature * (row.cost - alpha) || moved > row.cost) moved = row.cost;
    if (move <= -curvature * alpha || moved < 0.0) moved = 0.0;
    B_out[k] = 0.0 - moved;  // not −0
    total += moved;
  }
  B_out[row.label] = total;
}

}  // namespace kfu

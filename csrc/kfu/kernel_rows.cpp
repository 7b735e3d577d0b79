#include "kfu/kernel_rows.h"

#include <algorithm>

namespace kfu {

namespace {

constexpr Index kFewestRows = 16;
constexpr Index kRowsTogether = 64;  // rows computed by one call when all are wanted

}  // namespace

KernelRows::KernelRows(std::shared_ptr<KernelStore> store, std::vector<Index> points,
                       const DataView* watched, double bytes)
    : store_(std::move(store)), points_(std::move(points)), gram_(store_->gram<double>()) {
  const Index n = n_variables();
  columns_ = gram_.make_columns(n);
  columns_->assign(0, points_.data(), n);
  if (watched != nullptr && watched->n > 0) {
    watched_columns_ = gram_.make_columns_of(*watched);
    n_watched_ = watched->n;
  }
  std::vector<double> all(static_cast<std::size_t>(gram_.size()));
  gram_.diagonal(all.data());
  diagonal_.resize(points_.size());
  for (Index k = 0; k < n; ++k) diagonal_[k] = all[points_[k]];
  const double row_bytes = 8.0 * static_cast<double>(std::max<Index>(length(), 1));
  const double fitting = bytes / row_bytes;
  most_rows_ = fitting < static_cast<double>(n) ? static_cast<Index>(fitting) : n;
  most_rows_ = std::max(most_rows_, std::min(n, kFewestRows));
  rows_.resize(points_.size());
}

void KernelRows::compute(const std::vector<Index>& variables) {
  std::vector<Index> points;
  std::vector<double*> out, out_watched;
  for (Index v : variables) {
    rows_[v].values.resize(length());
    points.push_back(points_[v]);
    out.push_back(rows_[v].values.data());
    out_watched.push_back(rows_[v].values.data() + n_variables());
  }
  const Index count = static_cast<Index>(variables.size());
  gram_.rows(points.data(), count, *columns_, 0, n_variables(), out.data());
  if (n_watched_ > 0)
    gram_.rows(points.data(), count, *watched_columns_, 0, n_watched_, out_watched.data());
  for (Index v : variables) rows_[v].is_there = true;
  n_rows_ += count;
  evaluations_ += count * length();
}

void KernelRows::make_room() {
  while (n_rows_ >= most_rows_) {
    Index oldest = -1;
    for (Index v = 0; v < n_variables(); ++v)
      if (rows_[v].is_there && rows_[v].pins == 0 &&
          (oldest < 0 || rows_[v].last_use < rows_[oldest].last_use))
        oldest = v;
    if (oldest < 0) return;  // all are in use: the free variables need more than the budget
    rows_[oldest].values = Buffer<double>();
    rows_[oldest].is_there = false;
    --n_rows_;
  }
}

const double* KernelRows::take(Index variable) {
  if (is_full_) return rows_[variable].values.data();
  const std::lock_guard<std::mutex> guard(lock_);
  Row& row = rows_[variable];
  if (!row.is_there) {
    make_room();
    compute({variable});
  }
  ++row.pins;
  row.last_use = ++clock_;
  return row.values.data();
}

void KernelRows::give_back(Index variable) {
  if (is_full_) return;
  const std::lock_guard<std::mutex> guard(lock_);
  --rows_[variable].pins;
}

void KernelRows::fill() {
  const std::lock_guard<std::mutex> guard(lock_);
  if (most_rows_ < n_variables()) return;
  std::vector<Index> missing;
  for (Index v = 0; v <= n_variables(); ++v) {
    if (v < n_variables() && !rows_[v].is_there) missing.push_back(v);
    const bool is_enough = static_cast<Index>(missing.size()) == kRowsTogether;
    if (!missing.empty() && (is_enough || v == n_variables())) {
      compute(missing);
      missing.clear();
    }
  }
  is_full_ = true;
}

void KernelRows::accumulate(const Index* variables, const double* coef, Index count,
                            double* out) const {
  std::vector<Index> points(static_cast<std::size_t>(count));
  for (Index k = 0; k < count; ++k) points[k] = points_[variables[k]];
  gram_.accumulate(points.data(), coef, count, 1, *columns_, 0, n_variables(), out, length(), {});
  if (n_watched_ > 0)
    gram_.accumulate(points.data(), coef, count, 1, *watched_columns_, 0, n_watched_,
                     out + n_variables(), length(), {});
}

}  // namespace kfu

#include "kfu/parametric_tableau.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kfu/vector_scans.h"

namespace kfu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kTrust = 1e-9;      // of outputs: errors above are not taken for rounding
constexpr double kRounding = 1e-14;  // of all terms of a sum: errors below are

// A number in ±[1, 2) that has no pattern: the fractional part of i·golden ratio.
double weight_of(Index i) {
  const double golden = 0.6180339887498949 * static_cast<double>(i + 1);
  const double part = golden - std::floor(golden);
  return part < 0.5 ? -1.0 - part : 1.0 + part;
}

}  // namespace

ParametricTableau::ParametricTableau(const ParametricRun& run, double bytes)
    : run_(run),
      factor_(run.factor_),
      n_(run.n_),
      m_(static_cast<Index>(run.free_.size())),
      groups_(run.problem_.has_equality ? run.problem_.n_groups() : 0),
      columns_(new std::atomic<const double*>[static_cast<std::size_t>(run.n_)]) {
  for (int g = 0; g < groups_; ++g) is_there_ = is_there_ && run.n_free_of_[g] > 0;
  if (!is_there_) return;
  for (int g = 0, k = 0; g < groups_; ++g)
    for (int h = g; h < groups_; ++h) grams_[groups_ == 1 ? 0 : k++] = factor_.aa(g, h);
  for (Index q = 0; q < n_; ++q) columns_[q].store(nullptr);
  set_order();
  set_weights();
  projected_.resize(n_bounded() * m_);
  totals_.resize(groups_ * length());
  const double left = bytes - 8.0 * static_cast<double>(projected_.size());
  const double fitting = std::max(0.0, left) / (8.0 * static_cast<double>(length()));
  most_columns_ = fitting < static_cast<double>(n_) ? static_cast<Index>(fitting) : n_;
}

void ParametricTableau::set_order() {
  order_ = run_.free_;
  for (Index i = 0; i < n_; ++i)
    if (!is_free(run_.place_[i])) order_.push_back(i);
  position_.resize(static_cast<std::size_t>(n_));
  const auto size = static_cast<std::size_t>(length());
  following_.assign(size, 0.0);
  given_.assign(size, 0.0);
  low_.assign(size, -kInf);
  high_.assign(size, kInf);
  for (Index q = 0; q < n_; ++q) {
    const Index i = order_[q];
    position_[i] = q;
    const double x = run_.F_[i] - run_.theta_of(i);
    if (q < m_) {
      following_[q] = run_.beta_[i];
      given_[q] = -run_.free_offset(i);
      ends_of_beta(i, run_.place_[i], &low_[q], &high_[q]);
    } else {
      following_[q] = x;
      given_[q] = run_.beta_[i];
      if (!run_.fixed_[i]) ends_of_x(i, run_.place_[i], &low_[q], &high_[q]);
    }
  }
  for (int g = 0; g < groups_; ++g) following_[n_ + g] = run_.theta_[g];
}

// w'x − w'(K + ridge)β − w'linear + Σ_g θ_g w(g), as weights of v and u.
void ParametricTableau::set_weights() {
  std::vector<double> w(static_cast<std::size_t>(n_));
  std::vector<Index> all(w.size());
  for (Index i = 0; i < n_; ++i) {
    w[i] = weight_of(i);
    all[i] = i;
  }
  std::vector<double> product(static_cast<std::size_t>(run_.length_), 0.0);
  if (run_.rows_->is_full())
    run_.add_rows(all.data(), w.data(), n_, product.data());
  else
    run_.rows_->accumulate(all.data(), w.data(), n_, product.data());
  weight_of_following_.assign(static_cast<std::size_t>(length()), 0.0);
  weight_of_given_.assign(static_cast<std::size_t>(length()), 0.0);
  double terms = 0.0, scale = 0.0;
  for (Index i = 0; i < n_; ++i) {
    if (!run_.problem_.ridge.empty()) product[i] += run_.problem_.ridge[i] * w[i];
    const Index q = position_[i];
    weight_of_following_[q] = q < m_ ? -product[i] : w[i];
    weight_of_given_[q] = q < m_ ? w[i] : -product[i];
    constant_ -= w[i] * run_.linear_[i];
    if (groups_ > 0) weight_of_following_[n_ + run_.group(i)] += w[i];
    terms += std::fabs(weight_of_following_[q] * following_[q]) +
             std::fabs(weight_of_given_[q] * given_[q]) + std::fabs(w[i] * run_.linear_[i]);
    scale = std::max(scale, std::fabs(run_.linear_[i]));
  }
  tolerance_ = std::max(kTrust * (scale + run_.output_scale_), kRounding * terms);
}

double ParametricTableau::mismatch(const double* following, const double* given) const {
  return constant_ + sum_of(length(), [&](Index q) {
           return weight_of_following_[q] * following[q] + weight_of_given_[q] * given[q];
         });
}

void ParametricTableau::ends_of_x(Index i, Place place, double* low, double* high) const {
  const double kink = run_.kink_at(i);
  *low = -kInf;
  *high = kInf;
  if (place == Place::kink) {
    *low = -kink;
    *high = kink;
  } else if (place == Place::lower) {
    *low = run_.lower_[i] < 0.0 ? kink : -kink;
  } else {
    *high = run_.upper_[i] > 0.0 ? -kink : kink;
  }
}

void ParametricTableau::ends_of_beta(Index i, Place place, double* low, double* high) const {
  *low = place == Place::free && run_.has_kink() ? 0.0 : run_.lower_[i];
  *high = place == Place::free_below ? 0.0 : run_.upper_[i];
}

void ParametricTableau::project(Index first, Index last) {
  const Index rows = n_bounded();
  for (Index k = 0; k < m_; ++k) {
    const double* row = run_.free_rows_[k];
    double* out = projected_.data() + k * rows;
    for (Index r = first; r < last; ++r) out[r] = row[order_[m_ + r]];
  }
  factor_.solve_rows(projected_.data() + first, last - first, rows);
}

void ParametricTableau::multipliers(const double* right, double* mu) const {
  if (groups_ == 2) {
    const double det = grams_[0] * grams_[2] - grams_[1] * grams_[1];
    mu[0] = (grams_[2] * right[0] - grams_[1] * right[1]) / det;
    mu[1] = (grams_[0] * right[1] - grams_[1] * right[0]) / det;
  } else if (groups_ == 1) {
    mu[0] = right[0] / grams_[0];
  }
}

// y above, the part of x that does not come from b below, and θ'. Positions from n_ on are totals.
void ParametricTableau::begin_column(Index position, double* column) const {
  const Index rows = n_bounded();
  const bool is_bounded = position >= m_ && position < n_;
  double need[kMostGroups] = {0.0, 0.0}, right[kMostGroups], mu[kMostGroups] = {0.0, 0.0};
  std::fill(column, column + length(), 0.0);
  if (is_bounded) {
    const double* source = projected_.data() + (position - m_);
    for (Index k = 0; k < m_; ++k) column[k] = -source[k * rows];
    if (groups_ > 0) need[group(position)] = -1.0;
  } else if (position < m_) {
    factor_.unit_column(position, column);
  } else {
    need[position - n_] = 1.0;
  }
  for (int g = 0; g < groups_; ++g) {
    const double* a = factor_.border(g);
    right[g] = need[g] - sum_of(m_, [&](Index k) { return a[k] * column[k]; });
  }
  multipliers(right, mu);
  for (int g = 0; g < groups_; ++g) {
    const double* a = factor_.border(g);
    for (Index k = 0; k < m_; ++k) column[k] += mu[g] * a[k];
    column[n_ + g] = mu[g] - run_.border_ * need[g];
  }
  if (is_bounded) {
    const Index variable = order_[position];
    const HeldRow held(*run_.rows_, variable);
    const double* row = held.values();
    for (Index q = m_; q < n_; ++q) column[q] = row[order_[q]];
    if (!run_.problem_.ridge.empty()) column[position] += run_.problem_.ridge[variable];
  }
  if (groups_ == 1)
    for (Index q = m_; q < n_; ++q) column[q] -= column[n_];
  else if (groups_ == 2)
    for (Index q = m_; q < n_; ++q) column[q] -= column[n_ + group(q)];
}

// x gains R y; then b = L⁻ᵀy takes the place of y.
void ParametricTableau::finish_columns(double* columns, Index count) const {
  const Lapack& lapack = factor_.lapack();
  char no = 'N';
  double one = 1.0;
  int rows = static_cast<int>(n_bounded()), m = static_cast<int>(m_), n = static_cast<int>(count);
  int ld = static_cast<int>(length()), step = 1;
  double* R = const_cast<double*>(projected_.data());
  if (rows > 0 && m > 0) {
    if (count == 1)
      lapack.dgemv(&no, &rows, &m, &one, R, &rows, columns, &step, &one, columns + m_, &step);
    else
      lapack.dgemm(&no, &no, &rows, &n, &m, &one, R, &rows, columns, &ld, &one, columns + m_, &ld);
  }
  factor_.solve_columns(columns, count, length());
}

void ParametricTableau::fill_columns(const Index* positions, Index count, double* out) const {
  for (Index c = 0; c < count; ++c) begin_column(positions[c], out + c * length());
  finish_columns(out, count);
}

void ParametricTableau::make_totals() {
  for (int g = 0; g < groups_; ++g) {
    const Index position = n_ + g;
    fill_columns(&position, 1, totals_.data() + g * length());
  }
}

void ParametricTableau::make_columns(const Index* variables, Index first, Index last) {
  if (last > most_columns_) return;
  std::vector<Index> positions;
  for (Index k = first; k < last; ++k) positions.push_back(position_[variables[k]]);
  Buffer<double> panel((last - first) * length());
  fill_columns(positions.data(), last - first, panel.data());
  const std::lock_guard<std::mutex> guard(lock_);
  for (Index c = 0; c < last - first; ++c)
    columns_[positions[c]].store(panel.data() + c * length(), std::memory_order_release);
  kept_.push_back(std::move(panel));
  n_kept_ += last - first;
}

const double* ParametricTableau::column(Index position, Buffer<double>& spare) const {
  const double* found = columns_[position].load(std::memory_order_acquire);
  if (found != nullptr) return found;
  spare.resize(length());
  fill_columns(&position, 1, spare.data());
  const std::lock_guard<std::mutex> guard(lock_);
  found = columns_[position].load(std::memory_order_acquire);
  if (found != nullptr) return found;
  if (n_kept_ >= most_columns_) return spare.data();
  ++n_kept_;
  kept_.push_back(std::move(spare));
  spare = Buffer<double>();
  found = kept_.back().data();
  columns_[position].store(found, std::memory_order_release);
  return found;
}

}  // namespace kfu

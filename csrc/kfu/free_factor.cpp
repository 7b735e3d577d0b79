#include "kfu/free_factor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kfu/vector_scans.h"

namespace kfu {

namespace {

char kLower = 'L', kNo = 'N', kYes = 'T', kLeft = 'L', kRight = 'R';
int kOne = 1;

double dot(const std::vector<double>& a, const std::vector<double>& b, Index n) {
  return sum_of(n, [&](Index k) { return a[k] * b[k]; });
}

}  // namespace

FreeFactor::FreeFactor(const Lapack& lapack, int n_groups) : lapack_(lapack), n_groups_(n_groups) {}

// A copy has room for a few more variables, not for all the original once had.
FreeFactor::FreeFactor(const FreeFactor& other)
    : lapack_(other.lapack_),
      n_groups_(other.n_groups_),
      size_(other.size_),
      ld_(other.size_ + 16),
      changes_(other.changes_),
      L_(ld_ * ld_),
      z_(other.z_) {
  for (int g = 0; g < n_groups_; ++g) a_[g] = other.a_[g];
  for (Index k = 0; k < size_; ++k)
    std::memcpy(column(k) + k, other.L_.data() + k * other.ld_ + k,
                static_cast<std::size_t>(size_ - k) * sizeof(double));
}

void FreeFactor::grow() {
  const Index wanted = std::max<Index>(64, 2 * ld_);
  Buffer<double> grown(wanted * wanted);
  for (Index k = 0; k < size_; ++k)
    std::memcpy(grown.data() + k * wanted + k, column(k) + k,
                static_cast<std::size_t>(size_ - k) * sizeof(double));
  L_ = std::move(grown);
  ld_ = wanted;
}

double FreeFactor::try_insert(const double* column, double diagonal) {
  prepared_.assign(column, column + size_);
  if (size_ > 0) {
    int n = static_cast<int>(size_), ld = static_cast<int>(ld_);
    lapack_.dtrsv(&kLower, &kNo, &kNo, &n, L_.data(), &ld, prepared_.data(), &kOne);
  }
  return diagonal - dot(prepared_, prepared_, size_);
}

void FreeFactor::insert(double pivot, double right, int group) {
  if (size_ == ld_) grow();
  const double root = std::sqrt(pivot);
  for (Index k = 0; k < size_; ++k) column(k)[size_] = prepared_[k];
  column(size_)[size_] = root;
  z_.resize(static_cast<std::size_t>(size_ + 1));
  z_[size_] = (right - dot(prepared_, z_, size_)) / root;
  for (int g = 0; g < n_groups_; ++g) {
    a_[g].resize(static_cast<std::size_t>(size_ + 1));
    a_[g][size_] = ((g == group ? 1.0 : 0.0) - dot(prepared_, a_[g], size_)) / root;
  }
  ++size_;
  ++changes_;
}

void FreeFactor::dependence(double* out) {
  std::copy(prepared_.begin(), prepared_.end(), out);
  if (size_ == 0) return;
  int n = static_cast<int>(size_), ld = static_cast<int>(ld_);
  lapack_.dtrsv(&kLower, &kYes, &kNo, &n, L_.data(), &ld, out, &kOne);
}

void FreeFactor::remove(Index place) {
  const Index n = size_;
  for (Index k = 0; k < place; ++k)
    std::memmove(column(k) + place, column(k) + place + 1,
                 static_cast<std::size_t>(n - place - 1) * sizeof(double));
  for (Index k = place; k + 1 < n; ++k) {
    double* one = column(k) + k + 1;  // becomes column k from its diagonal on
    double* two = column(k + 1) + k + 1;
    // Their squares are sums within the diagonal of M: neither too large nor too small.
    const double length = std::sqrt(one[0] * one[0] + two[0] * two[0]);
    double c = one[0] / length, s = two[0] / length;
    int m = static_cast<int>(n - k - 1);
    lapack_.drot(&m, one, &kOne, two, &kOne, &c, &s);
    std::memmove(column(k) + k, one, static_cast<std::size_t>(m) * sizeof(double));
    const auto turn = [&](std::vector<double>& v) {
      const double x = v[k], y = v[k + 1];
      v[k] = c * x + s * y;
      v[k + 1] = c * y - s * x;
    };
    turn(z_);
    for (int g = 0; g < n_groups_; ++g) turn(a_[g]);
  }
  // The rotations bring L⁻¹r of the remaining rows to the front; the removed row's share is last.
  --size_;
  ++changes_;
}

bool FreeFactor::rebuild(Buffer<double>& M, const double* right, const int* groups) {
  changes_ = 0;
  int n = static_cast<int>(size_), info = 0;
  lapack_.dpotrf(&kLower, &n, M.data(), &n, &info);
  if (info != 0) return false;
  for (Index k = 0; k < size_; ++k)
    std::memcpy(column(k) + k, M.data() + k * size_ + k,
                static_cast<std::size_t>(size_ - k) * sizeof(double));
  set_right(right);
  int ld = static_cast<int>(ld_);
  for (int g = 0; g < n_groups_; ++g) {
    for (Index k = 0; k < size_; ++k) a_[g][k] = groups[k] == g ? 1.0 : 0.0;
    lapack_.dtrsv(&kLower, &kNo, &kNo, &n, L_.data(), &ld, a_[g].data(), &kOne);
  }
  return true;
}

void FreeFactor::set_right(const double* right) {
  z_.assign(right, right + size_);
  if (size_ == 0) return;
  int n = static_cast<int>(size_), ld = static_cast<int>(ld_);
  lapack_.dtrsv(&kLower, &kNo, &kNo, &n, L_.data(), &ld, z_.data(), &kOne);
}

void FreeFactor::solve(const double* mu, double* x) {
  for (Index k = 0; k < size_; ++k) {
    double sum = z_[k];
    for (int g = 0; g < n_groups_; ++g) sum += mu[g] * a_[g][k];
    x[k] = sum;
  }
  if (size_ == 0) return;
  int n = static_cast<int>(size_), ld = static_cast<int>(ld_);
  lapack_.dtrsv(&kLower, &kYes, &kNo, &n, L_.data(), &ld, x, &kOne);
}

void FreeFactor::solve_plain(double* x) {
  if (size_ == 0) return;
  int n = static_cast<int>(size_), ld = static_cast<int>(ld_);
  lapack_.dtrsv(&kLower, &kNo, &kNo, &n, L_.data(), &ld, x, &kOne);
  lapack_.dtrsv(&kLower, &kYes, &kNo, &n, L_.data(), &ld, x, &kOne);
}

void FreeFactor::unit_column(Index place, double* out) const {
  int n = static_cast<int>(size_ - place), ld = static_cast<int>(ld_);
  double* L = const_cast<double*>(L_.data()) + place * ld_ + place;
  out[place] = 1.0;
  lapack_.dtrsv(&kLower, &kNo, &kNo, &n, L, &ld, out + place, &kOne);
}

void FreeFactor::solve_rows(double* B, Index rows, Index ld) const {
  if (size_ == 0 || rows == 0) return;
  int m = static_cast<int>(rows), n = static_cast<int>(size_);
  int ldl = static_cast<int>(ld_), ldb = static_cast<int>(ld);
  double one = 1.0, *L = const_cast<double*>(L_.data());
  lapack_.dtrsm(&kRight, &kLower, &kYes, &kNo, &m, &n, &one, L, &ldl, B, &ldb);
}

void FreeFactor::solve_columns(double* Y, Index columns, Index ld) const {
  if (size_ == 0 || columns == 0) return;
  int n = static_cast<int>(size_), count = static_cast<int>(columns);
  int ldl = static_cast<int>(ld_), ldy = static_cast<int>(ld);
  double one = 1.0, *L = const_cast<double*>(L_.data());
  if (columns == 1)
    lapack_.dtrsv(&kLower, &kYes, &kNo, &n, L, &ldl, Y, &kOne);
  else
    lapack_.dtrsm(&kLeft, &kLower, &kYes, &kNo, &n, &count, &one, L, &ldl, Y, &ldy);
}

double FreeFactor::aa(int g, int h) const { return dot(a_[g], a_[h], size_); }

double FreeFactor::az(int g) const { return dot(a_[g], z_, size_); }

}  // namespace kfu

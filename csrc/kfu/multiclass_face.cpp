#include "kfu/multiclass_face.h"

#include <algorithm>

namespace kfu {

namespace {

constexpr double kResidual = 1e-2;  // relative, at which the faces are minimised well enough
constexpr double kEnough = 0.1;     // of the decrease without bounds: what a part has to bring
constexpr int kParts = 5;           // 1, ½, ..., 1/16 of the way are tried

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

}  // namespace

template <class T>
FaceStep<T>::FaceStep(MulticlassKind kind, Index n_classes, const SmoLoops<T, double>& loops)
    : row_problem_(kind, n_classes), n_classes_(n_classes), loops_(loops) {}

template <class T>
Index FaceStep<T>::find_free_rows(const ChunkView<T>& chunk) {
  const Index q = static_cast<Index>(chunk.rows->size());
  free_.clear();
  is_in_face_.clear();
  gradient_.clear();
  std::vector<char> face(static_cast<std::size_t>(n_classes_));
  for (Index r = 0; r < q; ++r) {
    const Index i = (*chunk.rows)[r];
    const MulticlassRow row{chunk.labels[i], chunk.costs[i], chunk.B + i * n_classes_, nullptr};
    if (row_problem_.face(row, face.data()) == 0) continue;
    free_.push_back(r);
    is_in_face_.insert(is_in_face_.end(), face.begin(), face.end());
    for (Index k = 0; k < n_classes_; ++k) gradient_.push_back(chunk.G[k * chunk.ld + r]);
  }
  return static_cast<Index>(free_.size());
}

// product_ = K x, class by class, for x over the free rows.
template <class T>
void FaceStep<T>::multiply(const ChunkView<T>& chunk, const std::vector<double>& x) {
  const Index q = static_cast<Index>(chunk.rows->size());
  const Index n_free = static_cast<Index>(free_.size());
  product_.resize(static_cast<std::size_t>(n_classes_ * chunk.ld));
#pragma omp parallel num_threads(chunk.threads) if (n_free * q > 20000)
  {
    std::vector<const T*> values;
    std::vector<double> coef;
#pragma omp for schedule(dynamic)
    for (Index k = 0; k < n_classes_; ++k) {
      values.clear();
      coef.clear();
      for (Index f = 0; f < n_free; ++f) {
        const double c = x[f * n_classes_ + k];
        if (c == 0.0) continue;
        values.push_back(chunk.block + free_[f] * chunk.ld);
        coef.push_back(c);
      }
      double* out = product_.data() + k * chunk.ld;
      std::fill(out, out + q, 0.0);
      loops_.add_rows(out, values.data(), coef.data(), static_cast<Index>(coef.size()), q);
    }
  }
}

template <class T>
void FaceStep<T>::gather_product(const ChunkView<T>& chunk, std::vector<double>& out) const {
  out.resize(gradient_.size());
  for (std::size_t f = 0; f < free_.size(); ++f)
    for (Index k = 0; k < n_classes_; ++k)
      out[static_cast<Index>(f) * n_classes_ + k] = product_[k * chunk.ld + free_[f]];
}

// Zero outside the faces, and sums of zero over each.
template <class T>
void FaceStep<T>::keep_on_faces(std::vector<double>& x) const {
  for (std::size_t f = 0; f < free_.size(); ++f) {
    double* row = x.data() + static_cast<Index>(f) * n_classes_;
    const char* face = is_in_face_.data() + static_cast<Index>(f) * n_classes_;
    double sum = 0.0;
    Index count = 0;
    for (Index k = 0; k < n_classes_; ++k)
      if (face[k]) sum += row[k], ++count;
    const double mean = sum / static_cast<double>(count);
    for (Index k = 0; k < n_classes_; ++k) row[k] = face[k] ? row[k] - mean : 0.0;
  }
}

// way_ = the way to the optimum on the faces, roughly. Returns the slope of D along it, ≤ 0.
template <class T>
double FaceStep<T>::minimise_on_faces(const ChunkView<T>& chunk, Index max_iterations) {
  const auto precondition = [&](std::vector<double>& x) {
    for (std::size_t f = 0; f < free_.size(); ++f) {
      const double curvature = chunk.curvature[(*chunk.rows)[free_[f]]];
      double* row = x.data() + static_cast<Index>(f) * n_classes_;
      for (Index k = 0; k < n_classes_; ++k) row[k] /= curvature;
    }
  };
  way_.assign(gradient_.size(), 0.0);
  residual_ = gradient_;
  for (double& value : residual_) value = -value;
  keep_on_faces(residual_);
  direction_ = residual_;
  precondition(direction_);
  double size = dot(residual_, direction_);
  const double enough = kResidual * kResidual * size;
  for (Index iteration = 0; iteration < max_iterations && size > enough; ++iteration) {
    multiply(chunk, direction_);
    gather_product(chunk, image_);
    keep_on_faces(image_);
    const double bend = dot(direction_, image_);
    if (!(bend > 0.0)) break;  // not convex here: what was found so far is a descent
    const double step = size / bend;
    for (std::size_t k = 0; k < way_.size(); ++k) {
      way_[k] += step * direction_[k];
      residual_[k] -= step * image_[k];
    }
    image_ = residual_;
    precondition(image_);
    const double next = dot(residual_, image_);
    for (std::size_t k = 0; k < way_.size(); ++k)
      direction_[k] = image_[k] + next / size * direction_[k];
    size = next;
  }
  return dot(gradient_, way_);
}

// target_ = the projection of B + part·way_ on the rows' sets, moves_ the way there. Returns the
// change of D.
template <class T>
double FaceStep<T>::try_part(const ChunkView<T>& chunk, double part) {
  target_.resize(way_.size());
  moves_.resize(way_.size());
  std::vector<double> slope(static_cast<std::size_t>(n_classes_));
  for (std::size_t f = 0; f < free_.size(); ++f) {
    const Index i = (*chunk.rows)[free_[f]], at = static_cast<Index>(f) * n_classes_;
    const double* B = chunk.B + i * n_classes_;
    for (Index k = 0; k < n_classes_; ++k) slope[k] = -part * way_[at + k];
    row_problem_.solve({chunk.labels[i], chunk.costs[i], B, slope.data()}, 1.0, &target_[at]);
    for (Index k = 0; k < n_classes_; ++k) moves_[at + k] = target_[at + k] - B[k];
  }
  multiply(chunk, moves_);
  gather_product(chunk, image_);
  return dot(moves_, gradient_) + 0.5 * dot(moves_, image_);
}

template <class T>
double FaceStep<T>::take(const ChunkView<T>& chunk, Index max_iterations) {
  if (find_free_rows(chunk) < 2) return 0.0;
  const double slope = minimise_on_faces(chunk, max_iterations);
  if (!(slope < 0.0)) return 0.0;
  double part = 1.0;
  for (int attempt = 0; attempt < kParts; ++attempt, part *= 0.5) {
    if (try_part(chunk, part) > 0.5 * kEnough * part * slope) continue;
    for (std::size_t f = 0; f < free_.size(); ++f) {
      const double* target = target_.data() + static_cast<Index>(f) * n_classes_;
      std::copy(target, target + n_classes_, chunk.B + (*chunk.rows)[free_[f]] * n_classes_);
    }
    const Index q = static_cast<Index>(chunk.rows->size());
    for (Index k = 0; k < n_classes_; ++k)
      for (Index r = 0; r < q; ++r) chunk.G[k * chunk.ld + r] += product_[k * chunk.ld + r];
    return part;
  }
  return 0.0;
}

template class FaceStep<float>;
template class FaceStep<double>;

}  // namespace kfu

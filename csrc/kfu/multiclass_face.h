// A step of all free rows of a chunk at once: the answer to problems so ill-conditioned (many
// examples in few dimensions, near-equal points of different classes, large costs) that solving one
// row after the other takes forever.
//
// While the bounds that hold do not change, the chunk is a quadratic problem without inequalities
// on the faces of its free rows (multiclass_row.h). Conjugate gradients, with the directions kept
// on the faces by subtracting means and the curvatures of the rows as preconditioner, go towards
// its optimum; the point reached is projected row by row on the rows' sets and taken if D falls
// enough, else half of the way is tried, and so on. Rows solved one by one find the faces, this
// finds the point on them (J. J. Moré, G. Toraldo, SIAM J. Optim. 1 (1991), for boxes).
#pragma once

#include <vector>

#include "kfu/multiclass_row.h"
#include "kfu/smo_loops.h"
#include "kfu/types.h"

namespace kfu {

/// The chunk as the step sees it: q rows, their block of K and their part of G by class.
template <class T>
struct ChunkView {
  const std::vector<Index>* rows;  ///< examples
  const Index* labels;             ///< by example, as costs, curvature and B
  const double* costs;
  const double* curvature;
  double* B;       ///< n × n_classes
  const T* block;  ///< q × ld
  double* G;       ///< n_classes × ld
  Index ld;
  int threads;
};

template <class T>
class FaceStep {
 public:
  FaceStep(MulticlassKind kind, Index n_classes, const SmoLoops<T, double>& loops);

  /// Takes one step of at most `max_iterations` conjugate gradient iterations. Returns the part of
  /// the way to the point they reached that was taken: 1, ½, ... or 0.
  double take(const ChunkView<T>& chunk, Index max_iterations);

 private:
  Index find_free_rows(const ChunkView<T>& chunk);
  void multiply(const ChunkView<T>& chunk, const std::vector<double>& x);
  void gather_product(const ChunkView<T>& chunk, std::vector<double>& out) const;
  void keep_on_faces(std::vector<double>& x) const;
  double minimise_on_faces(const ChunkView<T>& chunk, Index max_iterations);
  double try_part(const ChunkView<T>& chunk, double part);

  RowProblem row_problem_;
  Index n_classes_;
  const SmoLoops<T, double>& loops_;
  std::vector<Index> free_;       // positions in the chunk
  std::vector<char> is_in_face_;  // free rows × n_classes, as the vectors below
  std::vector<double> gradient_, way_, residual_, direction_, image_, target_, moves_;
  std::vector<double> product_;  // n_classes × ld: K times a vector, at all rows of the chunk
};

extern template class FaceStep<float>;
extern template class FaceStep<double>;

}  // namespace kfu

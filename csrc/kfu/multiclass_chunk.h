// A chunk of rows of the multiclass dual, solved among itself, and the pass that carries its moves
// to the gradient of all rows. See multiclass_row.h for the problem and multiclass_dual.h for the
// rounds.
//
// The chunk has its square block of kernel values (of type T) and a copy of its part of G by class,
// so that a move of one row in one class is one addition of vectors. Rows are solved exactly in
// sweeps: those whose violation is at least half of the largest at the start of a sweep, in the
// order of the chunk, each unless it has fallen below that meanwhile. A sweep pays for the search
// for violators once, and still spends its steps where they count. After so many steps that it
// costs little beside them, all free rows take a step together (multiclass_face.h).
#pragma once

#include <memory>
#include <vector>

#include "kfu/gram.h"
#include "kfu/multiclass_row.h"
#include "kfu/types.h"

namespace kfu {

/// Example i is row i of the data.
struct MulticlassProblem {
  MulticlassKind kind = MulticlassKind::crammer_singer;
  Index n_classes = 2;
  std::vector<Index> labels;  ///< in [0, n_classes)
  std::vector<double> costs;  ///< ≥ 0
  bool has_bias = false;

  Index size() const { return static_cast<Index>(labels.size()); }
};

/// What a chunk is solved for.
struct ChunkTask {
  const MulticlassProblem* problem;
  const double* curvature;  ///< by example, > 0
  const double* G;          ///< n_classes × n
  double offset;            ///< added to every value of K
  double goal;              ///< largest violation that may remain
  Index max_steps;
  int threads;
};

class MulticlassChunk {
 public:
  virtual ~MulticlassChunk() = default;

  /// Solves the rows (of B, n × n_classes) among themselves. Returns the number of row steps.
  virtual Index solve(const std::vector<Index>& rows, const ChunkTask& task, double* B) = 0;
  /// G[k·n + i] += Σ_r moves[r·n_classes + k] · K(rows[r], i) for all i.
  virtual void add_moves(const std::vector<Index>& rows, const std::vector<double>& moves,
                         int threads, double* G) = 0;
  /// Rows of a chunk that it can deal with well; at least 2.
  virtual Index largest_chunk() const = 0;
  /// Steps of all free rows together, so far.
  virtual Index face_steps() const = 0;
  /// Values of K computed so far.
  virtual Index evaluations() const = 0;
  /// K(i, i) for all points.
  virtual void diagonal(double* out) const = 0;
  virtual Simd simd() const = 0;
  virtual const char* layout() const = 0;
};

/// Over the given Gram, which outlives the result, with blocks of at most `bytes`.
template <class T>
std::unique_ptr<MulticlassChunk> make_multiclass_chunk(const Gram<T>& gram, Index n_classes,
                                                       double bytes);

extern template std::unique_ptr<MulticlassChunk> make_multiclass_chunk<float>(const Gram<float>&,
                                                                              Index, double);
extern template std::unique_ptr<MulticlassChunk> make_multiclass_chunk<double>(const Gram<double>&,
                                                                               Index, double);

}  // namespace kfu

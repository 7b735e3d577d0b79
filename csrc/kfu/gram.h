// The kernel matrix as its consumers see it: values K(row point, column point), produced panel by
// panel and either stored or folded at once into float64 sums.
//
// Rows are points of the data set a Gram was made from. Columns are a ColumnSet: a list of slots,
// each holding one point of that data set (training: the chunk, or the active points) or of another
// one with the same features (prediction). A set keeps its points packed for the micro-kernel, so
// evaluating against contiguous slots streams memory.
//
// Determinism: the value of K(i, j) is a function of the two points, the kernel, T and the
// instruction set alone. It does not depend on slots, on how rows are grouped, on panel boundaries
// or on threads, and K(i, j) == K(j, i) bit for bit for the dot-product statistics.
#pragma once

#include <memory>
#include <vector>

#include "kfu/column_work.h"
#include "kfu/kept_row.h"
#include "kfu/kernels.h"
#include "kfu/types.h"

namespace kfu {

/// Points prepared as columns. Slots beyond size() do not exist; assigning is O(features).
class ColumnSet {
 public:
  virtual ~ColumnSet() = default;
  virtual Index size() const = 0;
  /// Puts `count` points into consecutive slots first, first + 1, ...; grows the set if needed.
  virtual void assign(Index first, const Index* points, Index count) = 0;
  /// Puts points[k] into slots[k]; every slot must be < size().
  virtual void assign_slots(const Index* slots, const Index* points, Index count) = 0;
  /// Drops the slots from `size` on.
  virtual void truncate(Index size) = 0;
};

/// With e = constant + by_point[i] + by_point[j]: |value − K(i, j)| ≤ e for points i, j, and ≤ 1.02
/// e times the value where e ≤ 0.02 and the value is in the range of T. Nothing is known where
/// is_known is false.
struct ValueError {
  bool is_known = false;
  double constant = 0;
  std::vector<double> by_point;
};

/// How far Σ coef_j · value_j may be from Σ coef_j · K_j, for float32 values of a kernel in [0, 1]
/// that each have an error of at most `error` (e above): `weighed` is Σ |coef_j| · value_j and
/// `total` is Σ |coef_j|. Where errors are too large to be relative, all that is known is 0 ≤ K
/// ≤ 1.
inline double sum_error(double error, double weighed, double total) {
  constexpr double below_range = 1e-37;  // values that float32 does not have
  if (!(error <= 0.02)) return 1.01 * total;
  return 1.02 * error * weighed + below_range * total;
}

/// Where Gram::accumulate also puts the values it computes.
template <class T>
struct KeepRows {
  const KeptRow<T>* rows = nullptr;  ///< by row, indexed by slot; may be null, and so may each
  /// That of all rows; others than floating require T = float and is_within_unit(). Where it is
  /// fixed, values are rounded to it before they are used, in rows that are kept and in others.
  RowForm form = RowForm::floating;
  Part part = Part::whole;
};

/// Values of type T (float or double) of one kernel over one data set.
template <class T>
class Gram {
 public:
  virtual ~Gram() = default;

  virtual Index size() const = 0;          ///< points of the data set
  virtual Simd simd() const = 0;           ///< the instruction set in use (never `best`)
  virtual const char* layout() const = 0;  ///< "dense", "csr" or "precomputed"

  /// True when every value is known to be in [0, 1], so that rows may take fewer bytes.
  virtual bool is_within_unit() const = 0;

  /// Columns that are computed together: slots [k·width, (k+1)·width) cost as much as one of them.
  virtual Index panel_width() const = 0;

  /// out[i] = K(i, i), the T value widened to double, for all points.
  virtual void diagonal(double* out) const = 0;

  /// How far a value may be from K(i, j) in exact arithmetic.
  virtual ValueError value_error() const = 0;
  /// The same for the points of a set from make_columns_of, by slot.
  virtual ValueError value_error_of(const ColumnSet& columns) const = 0;

  /// An empty set of columns over this data set, with room for `capacity` slots.
  virtual std::unique_ptr<ColumnSet> make_columns(Index capacity) const = 0;
  /// All points of `other` (same d, dense if this layout is; for precomputed kernels an other.n ×
  /// size() matrix) as columns.
  virtual std::unique_ptr<ColumnSet> make_columns_of(const DataView& other) const = 0;

  /// out[r][c - first] = K(points[r], columns[c]) for c in [first, last).
  virtual void rows(const Index* points, Index n_rows, const ColumnSet& columns, Index first,
                    Index last, T* const* out) const = 0;

  /// sums[m * ld_sums + c] += Σ_r coef[r * n_outputs + m] · K(points[r], columns[c]) for c in
  /// [first, last) (indexed by slot, not relative to first), in float64 and in the order of r, so
  /// the result does not depend on how the call is split over r or c.
  virtual void accumulate(const Index* points, const double* coef, Index n_rows, Index n_outputs,
                          const ColumnSet& columns, Index first, Index last, double* sums,
                          Index ld_sums, const KeepRows<T>& keep) const = 0;

  /// accumulate() with one output, prepared for any ranges of columns and as many threads as the
  /// Gram was made with; `coef` and `keep.rows` outlive it. Null where that cannot be prepared in
  /// one piece: rows that take too much memory, or a few that are better met in another way.
  virtual std::unique_ptr<ColumnWork> accumulation(const Index*, const double*, Index,
                                                   const ColumnSet&, double*,
                                                   const KeepRows<T>&) const {
    return nullptr;
  }

  /// Both triangles from one evaluation: sums[c] += Σ_r coef[r] · K(points[r], columns[c]) and
  /// row_sums[r] += Σ_c column_coef[c] · K(points[r], columns[c]) for c in [first, last), all
  /// indexed by slot. Works in the calling thread alone; several may call it at the same time.
  virtual void accumulate_both(const Index* points, const double* coef, Index n_rows,
                               const ColumnSet& columns, Index first, Index last,
                               const double* column_coef, double* sums, double* row_sums,
                               Part part) const = 0;
};

/// Requires: `data` outlives the result; the kernel suits the data (checked by the Python layer).
/// `threads` bounds the OpenMP team of one call.
template <class T>
std::unique_ptr<Gram<T>> make_gram(const DataView& data, const Kernel& kernel, int threads,
                                   Simd simd);

extern template std::unique_ptr<Gram<float>> make_gram<float>(const DataView&, const Kernel&, int,
                                                              Simd);
extern template std::unique_ptr<Gram<double>> make_gram<double>(const DataView&, const Kernel&, int,
                                                                Simd);

}  // namespace kfu

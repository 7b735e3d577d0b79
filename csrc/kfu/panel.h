// The interface between the Gram classes and the panel code compiled once per instruction set.
//
// Points are cut into channels: the packed form of the points that one statistic needs (one set of
// feature factors, centred or not). A kernel reads one or more channels and combines leaf values.
//
//   dense columns   panel p of a channel holds slots [p·width, (p+1)·width) as [feature][width]
//   dense rows      packed in groups of R rows as [feature][R]; a group starting at row r begins at
//                   r · depth. Group sizes follow from the number of rows alone (group_size()).
//   sparse rows     SparseRow references; or, for a few rows, spread out as [feature][rows]
//   sparse columns  dense panels as above (expanded), or SparseRow references. The latter are met
//                   entry by entry by spread rows; otherwise a block expands them into scratch
//                   memory, with the features renumbered when there are many.
//
// Every sum runs over the features in increasing order within one lane, in segments: a chain of
// operations from 0 for each segment, then the chain of the segments. So a value does not depend on
// group sizes, slots or threads, the panel lines that a segment of sparse rows meets stay in the
// first-level cache, and the rounding error grows with the length of a segment rather than with the
// number of features.
#pragma once

#include <cstdint>

#include "kfu/kept_row.h"
#include "kfu/kernels.h"
#include "kfu/types.h"

namespace kfu {

/// Non-zero entries of one point.
template <class T>
struct SparseRow {
  const std::int32_t* indices = nullptr;
  const T* values = nullptr;
  Index count = 0;
};

/// Slots per panel: dense, and sparse (eight AVX2 registers of T: as many chains as it takes to
/// hide the latency of a multiply-add).
inline constexpr int dense_width = 16;
template <class T>
inline constexpr int sparse_width = 256 / static_cast<int>(sizeof(T));

/// Features of a segment. Above max_expanded_features there is one segment: entries are too far
/// apart for more to pay.
inline constexpr Index max_expanded_features = 2048;
inline constexpr Index segment_features = 128;
static inline Index segment_of(Index depth) {
  return depth <= max_expanded_features ? segment_features : depth;
}
static inline Index segments_of(Index depth) {
  return depth <= max_expanded_features ? (depth + segment_features - 1) / segment_features : 1;
}

/// How the accumulated sum becomes the statistic: factor 0: it is the statistic; else
/// s = max(0, xx + yy − factor · sum), xx and yy being the points' own values ("norms").
template <class T>
struct Channel {
  Statistic statistic = Statistic::dot;
  T factor = 0;
  Index depth = 0;  ///< features kept
};

/// One leaf, ready to be applied to a tile of sums.
template <class T>
struct LeafStep {
  int channel = 0;
  int kind = 0;
  Form form = Form::value;
  T gamma = 1;
  T coef0 = 0;
  int degree = 1;
  T factor = 0;  ///< Channel::factor
};

/// weight · product of leaves [first, last).
template <class T>
struct TermStep {
  T weight = 1;
  int first = 0, last = 0;
};

/// A kernel over its channels. Plain pointers, like everything the panel code touches: it must not
/// instantiate library templates under a wider instruction set.
template <class T>
struct Plan {
  const Channel<T>* channels = nullptr;
  int n_channels = 0;
  const LeafStep<T>* leaves = nullptr;
  const TermStep<T>* terms = nullptr;
  int n_terms = 0;
  bool is_sparse = false;
  int width = dense_width;
};

/// Whether values are those of one leaf as they are.
template <class T>
static inline bool is_single_leaf(const Plan<T>& plan) {
  return plan.n_terms == 1 && plan.terms[0].last == 1 && plan.terms[0].weight == T(1);
}

/// The rows of a call, in one channel.
template <class T>
struct RowSide {
  const T* packed = nullptr;             ///< dense
  const SparseRow<T>* sparse = nullptr;  ///< sparse
  const std::int32_t* starts = nullptr;  ///< sparse, several segments: [row][segment + 1] entries
  const T* spread = nullptr;             ///< sparse, PanelJob::n_spread > 0
  const T* norms = nullptr;              ///< where factor ≠ 0
};

/// The columns of a call, in one channel.
template <class T>
struct ColumnSide {
  const T* panels = nullptr;             ///< dense or expanded
  const SparseRow<T>* sparse = nullptr;  ///< not expanded: one entry per slot
  const T* norms = nullptr;              ///< padded to whole panels
};

/// Where the values go; columns are slots.
template <class T>
struct Sink {
  T* const* out = nullptr;  ///< out[r][c − out_first], or null
  Index out_first = 0;
  const KeptRow<T>* keep = nullptr;  ///< rows written past the caches; single ones may be none
  RowForm form = RowForm::floating;  ///< fixed: values are rounded to it before they are used
  Part part = Part::whole;           ///< of the values that is added up
  const double* coef = nullptr;      ///< [row][n_outputs]
  Index n_outputs = 0;
  double* sums = nullptr;  ///< sums[m · ld_sums + c]
  Index ld_sums = 0;
  const double* column_coef = nullptr;  ///< [c]: the symmetric part, in one thread; or null
  double* row_sums = nullptr;           ///< [row] gains Σ_c column_coef[c] · value
};

/// Everything a block of panels needs; shared by all threads of a call.
template <class T>
struct PanelJob {
  const Plan<T>* plan = nullptr;
  const RowSide<T>* rows = nullptr;        ///< per channel
  const ColumnSide<T>* columns = nullptr;  ///< per channel
  Index n_rows = 0;
  int n_spread = 0;           ///< rows are spread as [feature][n_spread]: 1 or PanelOps::lanes
  Index first = 0, last = 0;  ///< slots wanted
  Sink<T> sink;
};

/// Values that go through sum, kernel function and consumer together; they stay in the first-level
/// cache.
inline constexpr int tile_capacity = 1024;

/// Memory of one thread.
template <class T>
struct PanelScratch {
  T* tiles = nullptr;     ///< (n_channels + 3) · tile_capacity
  T* expanded = nullptr;  ///< sparse columns not yet expanded: one panel per channel
  Index expanded_stride = 0;
  std::int32_t* compact = nullptr;  ///< many features: [channel][feature] → number, 0 = absent;
                                    ///< all 0 between calls
  std::int32_t* indices = nullptr;  ///< the entries of a row that meet the panel
  T* values = nullptr;
};

/// The code of one instruction set.
template <class T>
struct PanelOps {
  Simd simd;
  /// Evaluates panels [first_panel, last_panel) for all rows of the job.
  void (*block)(const PanelJob<T>& job, Index first_panel, Index last_panel,
                const PanelScratch<T>& scratch);
  /// The sum of a point with itself: the chain that a tile would compute.
  /// A row that is not sparse has the values of features 0, 1, ...; `depth` counts the features.
  T (*self_sum)(Statistic statistic, bool is_sparse, const SparseRow<T>& row, Index depth);
  /// The kernel values where channel c has the statistics [c · tile_capacity + k], for
  /// k < tile_capacity. `work` has room for three tiles; the statistics are used up.
  const T* (*apply)(const Plan<T>& plan, T* statistics, T* work);
  void (*exp2)(const T* x, Index count, T* y);  ///< for x ≤ 0
  void (*tanh)(const T* x, Index count, T* y);
  int row_group;  ///< rows of a full dense group
  int lanes;      ///< values in a register
};

/// Size of the group that starts when `remaining` rows are left.
static inline int group_size(int row_group, Index remaining) {
  if (remaining >= row_group) return row_group;
  return remaining > 6 ? 6 : static_cast<int>(remaining);
}

/// The tables of the instruction sets; null where the build does not have them.
template <class T>
struct PanelTables {
  static const PanelOps<T>* baseline();
  static const PanelOps<T>* avx2();
  static const PanelOps<T>* avx512();
};
template <>
const PanelOps<float>* PanelTables<float>::baseline();
template <>
const PanelOps<double>* PanelTables<double>::baseline();
template <>
const PanelOps<float>* PanelTables<float>::avx2();
template <>
const PanelOps<double>* PanelTables<double>::avx2();
template <>
const PanelOps<float>* PanelTables<float>::avx512();
template <>
const PanelOps<double>* PanelTables<double>::avx512();

/// The one in use for `simd`; throws std::invalid_argument when this processor lacks it.
template <class T>
const PanelOps<T>& panel_ops(Simd simd);

/// True when this build and this processor have `simd`.
bool has_simd(Simd simd);

}  // namespace kfu

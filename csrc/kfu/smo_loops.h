// The vector loops of the subproblem solver, one set per instruction set.
//
// All arrays are padded to a multiple of kLoopPad entries. Padding entries, and variables that may
// not move in a direction, are excluded by additive masks instead of branches:
//   up_mask[k]  = 0 if β_k may increase, +inf otherwise (added to F before a minimum)
//   low_mask[k] = 0 if β_k may decrease, −inf otherwise (added to F before a maximum)
// Ties go to the smallest index, so the ends do not depend on the vector width. (The second
// variable of a pair may, where decreases differ by their rounding only.)
//
// T is the type of the rows of K, G that of F and the masks. float32 for both halves the memory
// that a step reads and doubles the values in a register; see Smo for when that is accurate enough.
#pragma once

#include "kfu/types.h"

namespace kfu {

constexpr Index kLoopPad = 32;

constexpr Index padded(Index n) { return (n + kLoopPad - 1) / kLoopPad * kLoopPad; }

/// The two ends of the KKT interval: argmin F over up, argmax F over low (−1 when there is none).
struct Extremes {
  double up_value;
  double low_value;
  Index up;
  Index low;
};

template <class T, class G>
struct SmoLoops {
  /// Extremes of F over m (padded) entries.
  Extremes (*scan)(const G* F, const G* up_mask, const G* low_mask, Index m);
  /// F += t·(row_i − row_j), then the extremes of the new F.
  Extremes (*step_and_scan)(G* F, const T* row_i, const T* row_j, double t, const G* up_mask,
                            const G* low_mask, Index m);
  /// argmax over low variables with F_k > F_i of (F_k − F_i)² / max(K_ii + K_kk − 2K_ik, floor);
  /// −1 when there is none.
  Index (*select_second)(const G* F, const T* row_i, const T* diagonal, G F_i, T K_ii,
                         const G* low_mask, T floor, Index m);
  /// F[k] += Σ_r delta[r]·rows[r][k] for k in [0, m), in the order of r; m need not be padded.
  void (*add_rows)(G* F, const T* const* rows, const double* delta, Index n_rows, Index m);
};

/// Requires: `simd` is not `best` and is supported by this processor.
template <class T, class G>
const SmoLoops<T, G>& smo_loops(Simd simd);

}  // namespace kfu

// One data set under one kernel, for every solver that works on it: the machines of a multiclass
// code, the folds of a cross-validation, the restarts of a path.
//
// Shared is what does not depend on a dual problem: the sparse copy of data that are mostly zeros,
// the evaluation of K at either precision (made when first asked for) and, when the caller says so,
// full rows of K. Rows hold K(point, all points) in the order of the data; a solver uses them when
// its variables are exactly the points, and then does not shrink, which would reorder its columns.
//
// The evaluations may be used by several threads at a time; the shared rows by one solver at a
// time.
#pragma once

#include <memory>
#include <mutex>

#include "kfu/gram.h"
#include "kfu/row_tier.h"
#include "kfu/settings.h"
#include "kfu/sparse_copy.h"

namespace kfu {

class KernelStore {
 public:
  /// What `data` points to outlives the store. `threads` is what the evaluations may use.
  KernelStore(const DataView& data, const Kernel& kernel, int threads, Simd simd);

  const DataView& data() const { return data_; }
  const Kernel& kernel() const { return kernel_; }
  bool is_linear() const { return is_linear_; }
  /// Multiply-adds behind one value of K.
  double value_cost() const { return kfu::value_cost(data_, kernel_); }

  template <class T>
  const Gram<T>& gram();
  /// Frees the float32 evaluation until it is asked for again. Requires: nobody uses it.
  void drop_float32();

  /// From here on rows are shared, within `bytes`.
  void share_rows(double bytes);
  /// The shared rows, or nulls.
  SharedRows<float> rows() const { return rows_; }

 private:
  std::unique_ptr<SparseCopy> copy_;  // of dense data that are mostly zeros, for both precisions
  DataView data_;
  Kernel kernel_;
  int threads_;
  Simd simd_;
  bool is_linear_;
  std::mutex making_;
  std::unique_ptr<Gram<float>> gram32_;
  std::unique_ptr<Gram<double>> gram64_;
  SharedRows<float> rows_;
};

template <>
const Gram<float>& KernelStore::gram<float>();
template <>
const Gram<double>& KernelStore::gram<double>();

}  // namespace kfu

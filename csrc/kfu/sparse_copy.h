// Dense data that are mostly zeros, as CSR: a sparse row × panel then costs less than a dense tile.
#pragma once

#include <cstdint>

#include "kfu/buffer.h"
#include "kfu/types.h"

namespace kfu {

class SparseCopy {
 public:
  /// Copies the non-zero entries of dense data; values keep their type.
  SparseCopy(const DataView& dense, int threads);

  /// CSR view of the copy, valid while the copy lives.
  DataView view() const { return view_; }

 private:
  template <class S>
  void fill(const DataView& dense, int threads, Buffer<S>& values);

  Buffer<Index> indptr_;
  Buffer<std::int32_t> indices_;
  Buffer<double> doubles_;
  Buffer<float> floats_;
  DataView view_;
};

/// Whether the panel code is faster on a sparse copy of these dense data, by a sample of their
/// rows.
bool is_mostly_zero(const DataView& data);

}  // namespace kfu

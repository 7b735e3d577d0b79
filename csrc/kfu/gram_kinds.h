// The two kinds of Gram that make_gram chooses from.
#pragma once

#include <memory>

#include "kfu/gram.h"

namespace kfu {

/// Kernels evaluated from the features. threads ≥ 1.
template <class T>
std::unique_ptr<Gram<T>> make_panel_gram(const DataView& data, const Kernel& kernel, int threads,
                                         Simd simd);

/// weight · the given matrix: K(row point r, column point c) = weight · matrix[c][r].
template <class T>
std::unique_ptr<Gram<T>> make_lookup_gram(const DataView& data, double weight, Simd simd);

}  // namespace kfu

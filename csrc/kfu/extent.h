// How large the features of a data set are.
#pragma once

#include "kfu/types.h"

namespace kfu {

/// The largest modulus of `count` values, 0 of none; NaN if one of them is.
double largest_modulus(const double* values, Index count, int threads);
double largest_modulus(const float* values, Index count, int threads);

}  // namespace kfu

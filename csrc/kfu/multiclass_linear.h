// The rows of the multiclass dual under the linear kernel, without kernel values.
//
// The K functions are weight vectors, so the gradient of a row costs one pass over its features and
// so does moving it: rows are solved exactly in turn, over and over, with the change of the weights
// (d × K) at hand (S. S. Keerthi et al., KDD (2008)). There is no chunk to fit in memory: a round
// goes over all rows that violate or are free, in a scattered order, and leaves alone those that
// settle at a corner meanwhile until the next round.
#pragma once

#include <memory>

#include "kfu/gram.h"
#include "kfu/multiclass_chunk.h"
#include "kfu/types.h"

namespace kfu {

/// `data` and `gram` (of the same data) outlive the result.
std::unique_ptr<MulticlassChunk> make_linear_chunk(const DataView& data, const Gram<double>& gram,
                                                   Index n_classes);

}  // namespace kfu

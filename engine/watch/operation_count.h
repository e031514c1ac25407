#pragma once

#include <functional>

namespace phalanx {

/// Returns the floating-point operations of the matrix products, convolutions, recurrent layers and attention that
/// `compute` calls on this thread, gradients included: 2 for each multiplication and the addition of its result. They
/// follow from shapes alone. Fused attention counts as its products do when they are written out, over all keys, also
/// if it is causal, and without what it computes again for the gradient. Elementwise functions, norms, pooling and
/// updates do not count.
double count_operations(const std::function<void()>& compute);

}  // namespace phalanx

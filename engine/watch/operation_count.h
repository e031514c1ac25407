// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace phalanx {

/// Calls `compute` and returns the floating-point operations of the matrix products, convolutions, recurrent layers and
/// attention that it runs on this thread, gradients included. A multiplication and the addition of its result are 2
/// operations. Counts follow from shapes only. Fused attention counts as the equivalent matrix products, over all keys
/// even if it is causal, and without the products that it recomputes for the gradient. Elementwise functions, norms,
/// pooling and updates do not count.
double count_operations(const std::function<void()>& compute);

}  // namespace phalanx

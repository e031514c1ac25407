// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

namespace phalanx {

/// Counts, as long as it exists, the floating-point operations of the matrix products, convolutions, recurrent layers
/// and attention that run on the thread that made it, gradients included. A multiplication and the addition of its
/// result are 2 operations. Counts follow from shapes only. Fused attention counts as the equivalent matrix products,
/// over all keys even if it is causal, and without the products that it recomputes for the gradient. Elementwise
/// functions, norms, pooling and updates do not count. A thread has at most one at a time.
class FlopCounter {
 public:
  FlopCounter();
  ~FlopCounter();

  /// Returns the number of operations so far.
  double count() const;

 private:
  class Counter;

  std::unique_ptr<Counter> counter_;
};

/// Calls `compute` and returns the operations that it runs on this thread, as FlopCounter counts them.
double count_flops(const std::function<void()>& compute);

}  // namespace phalanx

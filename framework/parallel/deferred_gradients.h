// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <functional>
#include <vector>

namespace phalanx {

/// Gradients of weights that a backward has left for later: only those of inputs are what other ranks wait for (Qi et
/// al. 2023, arXiv:2401.10241, section 2.1). Each keeps the tensors that it needs.
using DeferredGradients = std::vector<std::function<void()>>;

/// While one lives, layers that can do so put off the gradients of their weights in backwards that this thread begins,
/// also where LibTorch goes on with them in threads of devices. What is put off has to be called, in order, before
/// anybody looks at the gradients.
class DeferGradients {
 public:
  explicit DeferGradients(DeferredGradients& to);

  /// Does `compute` now, or puts it off.
  static void now_or_later(std::function<void()> compute);

 private:
  c10::DebugInfoGuard guard_;
};

/// While one lives, forwards of this thread are those of backwards with DeferGradients: layers that are slower if they
/// can put gradients off may be so here.
class ExpectDeferral {
 public:
  ExpectDeferral();

  /// Whether one lives; where a backward computes forward again, whether it puts gradients off.
  static bool any();

 private:
  c10::DebugInfoGuard guard_;
};

}  // namespace phalanx

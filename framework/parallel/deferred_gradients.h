// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <functional>
#include <vector>

namespace phalanx {

/// Gradients of weights that a backward pass has deferred: other ranks wait only for the gradients of inputs (Qi et al.
/// 2023, arXiv:2401.10241, section 2.1). Each entry keeps the tensors that it needs alive.
using DeferredGradients = std::vector<std::function<void()>>;

/// While one exists, layers that support it defer the gradients of their weights in backward passes that this thread
/// begins, even if LibTorch continues them in the threads of devices. The deferred functions must be called, in order,
/// before the gradients are read.
class DeferGradients {
 public:
  explicit DeferGradients(DeferredGradients& to);

  /// Calls `compute` now, or defers it.
  static void now_or_later(std::function<void()> compute);

 private:
  c10::DebugInfoGuard guard_;
};

/// While one exists, forward passes of this thread belong to backward passes with DeferGradients. Layers whose code is
/// slower if it can defer gradients may use that code here.
class ExpectDeferral {
 public:
  ExpectDeferral();

  /// Returns true if one exists. While a backward pass computes forward again, returns true if that backward defers
  /// gradients.
  static bool any();

 private:
  c10::DebugInfoGuard guard_;
};

}  // namespace phalanx

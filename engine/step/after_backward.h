// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "engine/step/step_listener.h"

namespace phalanx {

/// Calls a function after each backward, such as Strategy::after_backward().
class AfterBackward final : public StepListener {
 public:
  explicit AfterBackward(std::function<void()> function) : function_(std::move(function)) {}

  void after_backward() override { function_(); }

 private:
  std::function<void()> function_;
};

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/random_state.h"

#include <ATen/Context.h>

#include <mutex>

namespace phalanx {

at::Tensor random_state(const c10::Device& device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(const at::Tensor& state, const c10::Device& device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace phalanx

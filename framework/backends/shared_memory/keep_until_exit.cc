// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/keep_until_exit.h"

#include <mutex>
#include <vector>

namespace phalanx::shared_memory {

void keep_until_exit(const at::Tensor& tensor) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<at::Tensor>;
  const std::lock_guard lock(mutex);
  kept.push_back(tensor);
}

}  // namespace phalanx::shared_memory

// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/plain_memory.h"

#include <ATen/ops/zeros.h>

#include <string>

#include "framework/base/error.h"

namespace phalanx {
namespace {

[[noreturn]] void refuse(const Communicator& group) {
  throw ConfigError("the " + std::to_string(group.size()) + " ranks of " + group.name() +
                    " do not share memory; run them on one host, with backend: shm or inproc");
}

}  // namespace

at::Tensor plain_memory(const Communicator& group, const Allocation& allocation) {
  if (allocation.shared() && group.size() > 1) refuse(group);
  return at::zeros(allocation.sizes, allocation.options);
}

void require_shared_memory(const Communicator& group) {
  if (!group.shares_memory()) refuse(group);
}

}  // namespace phalanx

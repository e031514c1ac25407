#include "framework/comm/plain_memory.h"

#include <ATen/ops/zeros.h>

#include <string>

#include "framework/base/error.h"

namespace phalanx {

at::Tensor plain_memory(const Communicator& group, const Allocation& allocation) {
  if (allocation.shared() && group.size() > 1) {
    throw ConfigError("the " + std::to_string(group.size()) + " ranks of " + group.name() +
                      " have no memory in common; run them on one host, with backend: shm or inproc");
  }
  return at::zeros(allocation.sizes, allocation.options);
}

}  // namespace phalanx

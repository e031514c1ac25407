#include "framework/comm/shared_memory.h"

#include "framework/base/error.h"

namespace phalanx {

void refuse_shared_memory(const Communicator& group) {
  if (group.shares_memory()) return;
  throw ConfigError("the " + std::to_string(group.size()) + " ranks of " + group.name() +
                    " have no memory in common; run them on one host, with backend: shm or inproc");
}

}  // namespace phalanx

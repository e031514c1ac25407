// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "framework/backends/shared_memory/messages.h"

namespace phalanx::shared_memory {

/// The messages of all groups of one rank, so that the messages of one group make progress while the rank waits in
/// another. Thread-safe.
class AllMessages {
 public:
  void add(const std::shared_ptr<Messages>& messages);
  void poll();

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Messages>> all_;
};

}  // namespace phalanx::shared_memory

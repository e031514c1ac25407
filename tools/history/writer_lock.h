// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/descriptor.h"

namespace phalanx::history {

/// Makes this process the only one that writes to a database, through a lock of the file PATH.lock. The operating
/// system releases the lock when the process ends, even if it is killed. Child processes that execute another program
/// do not keep it.
class WriterLock {
 public:
  /// Does not wait. Throws ConfigError if another process has the lock, which names that process and its host, or if
  /// the file cannot be written.
  explicit WriterLock(const std::string& database);

 private:
  Descriptor file_;
};

}  // namespace phalanx::history

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"

namespace phalanx {

/// A descriptor that any thread makes readable, to wake a thread that polls it.
class Wakeup {
 public:
  /// Throws Error, "FAILURE: why", if the system has no descriptor left.
  explicit Wakeup(const std::string& failure) : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!descriptor_.valid()) throw Error(failure + ": " + std::strerror(errno));
  }

  int descriptor() const { return descriptor_.get(); }

  /// Makes the descriptor readable. Thread-safe.
  void raise() const {
    const std::uint64_t one = 1;
    (void)!::write(descriptor(), &one, sizeof(one));  // a counter of 0 has room for one more
  }

  void clear() const {
    std::uint64_t count = 0;
    (void)!::read(descriptor(), &count, sizeof(count));
  }

 private:
  Descriptor descriptor_;
};

}  // namespace phalanx

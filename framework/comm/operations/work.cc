// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/work.h"

#include <exception>

#include "framework/base/log.h"

namespace phalanx {

void Work::finish() noexcept {
  if (!state_ || waited_) return;
  try {
    wait();
  } catch (const std::exception& error) {
    // While another failure unwinds the stack, this one is mostly a consequence of it.
    auto line = std::uncaught_exceptions() > 0 ? log_info() : log_error();
    line << "an operation whose Work was dropped without wait() failed: " << error.what();
  } catch (...) {
    log_error() << "an operation whose Work was dropped without wait() failed";
  }
}

void wait_all(std::vector<Work>& works) {
  for (auto& work : works) work.wait();
}

}  // namespace phalanx

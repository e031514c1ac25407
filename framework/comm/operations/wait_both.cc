// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/wait_both.h"

#include <exception>

#include "framework/base/log.h"

namespace phalanx {

void wait_both(Work& first, Work& second) {
  try {
    first.wait();
  } catch (...) {
    try {
      second.wait();
    } catch (const std::exception& error) {
      log_info() << "the second of two operations failed, too: " << error.what();
    }
    throw;
  }
  second.wait();
}

}  // namespace phalanx

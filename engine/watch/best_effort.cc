// SPDX-License-Identifier: Apache-2.0
#include "engine/watch/best_effort.h"

#include <exception>
#include <string>
#include <utility>

#include "framework/base/console.h"
#include "framework/base/log.h"

namespace phalanx {

void BestEffort::attempt(const std::function<void()>& task, const char* what_happens_now) {
  try {
    task();
    reported_ = false;
  } catch (const std::exception& error) {
    if (std::exchange(reported_, true)) return;
    const std::string text = std::string(error.what()) + "; " + what_happens_now;
    log_warning() << text;
    standard_error().write("Warning: " + text + "\n");
  }
}

}  // namespace phalanx

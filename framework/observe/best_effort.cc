// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/best_effort.h"

#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "framework/base/console.h"
#include "framework/base/error.h"
#include "framework/base/log.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause{250};

void warn(const std::string& text) {
  log_warning() << text;
  standard_error().write("Warning: " + text + "\n");
}

}  // namespace

void BestEffort::attempt(const std::function<void()>& task, const char* what_happens_now) {
  try {
    task();
    reported_ = false;
  } catch (const std::exception& error) {
    if (std::exchange(reported_, true)) return;
    warn(std::string(error.what()) + "; " + what_happens_now);
  }
}

void insist(const std::function<void()>& task, Seconds patience) {
  const auto start = Clock::now();
  bool told = false;
  while (true) {
    try {
      return task();
    } catch (const DataError& error) {
      if (Clock::now() - start >= patience) throw;
      if (!std::exchange(told, true)) warn(std::string(error.what()) + "; it is tried again");
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace phalanx

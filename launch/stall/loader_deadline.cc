// SPDX-License-Identifier: Apache-2.0
#include "launch/stall/loader_deadline.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Seconds kMaxLoaderCheckInterval{1};

}  // namespace

LoaderDeadline::LoaderDeadline(Options options) : options_(std::move(options)) {
  const BlockedSignals blocked;  // signals go to the threads that expect them
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

LoaderDeadline::~LoaderDeadline() {
  thread_.request_stop();
  thread_.join();
}

void LoaderDeadline::watch(const std::stop_token& stop) {
  const Seconds interval = std::min(kMaxLoaderCheckInterval, options_.deadline / 4);
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  std::int64_t since = 0;  // when the rank has begun to wait for its batch
  Seconds seen{0};         // the part of this wait in which this thread could run
  while (!stop.stop_requested()) {
    const auto before = Clock::now();
    stopped.wait_for(lock, stop, interval, [] { return false; });
    if (stop.stop_requested()) return;
    const bool same = options_.page->activity_since_ns() == since;
    since = options_.page->activity_since_ns();
    seen = same ? seen + std::min<Seconds>(Clock::now() - before, 2 * interval) : Seconds(0);
    if (options_.page->activity() != Activity::kLoading || seen < options_.deadline) continue;
    options_.end(reason());
    return;
  }
}

std::string LoaderDeadline::reason() const {
  const std::string call = options_.page->blocked_in();
  return "rank " + std::to_string(options_.rank) + ": dataset \"" + options_.dataset +
         "\" has given no batch for step " + std::to_string(options_.page->step() + 1) +
         format_text(" within %g s (loader.timeout): ", options_.deadline.count()) +
         (call.empty() ? "the loader computes" : "the loader is blocked in " + call) +
         "; check that the files of the dataset can be read, or allow more time";
}

}  // namespace phalanx

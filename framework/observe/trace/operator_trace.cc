// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/trace/operator_trace.h"

#include <ATen/record_function.h>

#include <mutex>
#include <stdexcept>
#include <utility>

#include "framework/base/debug_info_kind.h"
#include "framework/observe/monotonic_clock.h"

namespace phalanx {

struct CollectedOperators final : c10::DebugInfoBase {
  std::mutex mutex;
  std::vector<TraceEvent> events;
};

namespace {

// A callback is a plain function, so it finds its output in thread-local storage. LibTorch passes both the callback and
// the storage on to the threads that run a backward.
CollectedOperators* current() {
  return static_cast<CollectedOperators*>(c10::ThreadLocalDebugInfo::get(kOperatorTraceInfo));
}

std::shared_ptr<CollectedOperators> make_collected() {
  if (current() != nullptr) throw std::invalid_argument("this thread's operators are already traced");
  return std::make_shared<CollectedOperators>();
}

struct Begin final : at::ObserverContext {
  std::int64_t ns = monotonic_ns();
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction&) { return std::make_unique<Begin>(); }

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  CollectedOperators* const collected = current();
  if (collected == nullptr) return;
  const std::lock_guard lock(collected->mutex);
  collected->events.push_back({.name = function.name(),
                               .lane = kOperatorsLane,
                               .begin_ns = static_cast<const Begin*>(context)->ns,
                               .end_ns = monotonic_ns()});
}

}  // namespace

OperatorTrace::OperatorTrace()
    : collected_(make_collected()),
      guard_(kOperatorTraceInfo, collected_),
      callback_(
          at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                         .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {}

OperatorTrace::~OperatorTrace() { at::removeCallback(callback_); }

std::vector<TraceEvent> OperatorTrace::take() {
  const std::lock_guard lock(collected_->mutex);
  return std::exchange(collected_->events, {});
}

}  // namespace phalanx

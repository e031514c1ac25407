#include "framework/observe/operator_trace.h"

#include <ATen/record_function.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "framework/observe/monotonic_clock.h"

namespace phalanx {
namespace {

// A callback is a plain function, so what it writes to belongs to the thread.
thread_local std::vector<TraceEvent>* collected = nullptr;

struct Begin final : at::ObserverContext {
  std::int64_t ns = monotonic_ns();
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction&) { return std::make_unique<Begin>(); }

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  if (collected == nullptr) return;
  collected->push_back({.name = function.name(),
                        .lane = kOperatorsLane,
                        .begin_ns = static_cast<const Begin*>(context)->ns,
                        .end_ns = monotonic_ns()});
}

}  // namespace

OperatorTrace::OperatorTrace() {
  if (collected != nullptr) throw std::invalid_argument("this thread's operators are traced already");
  collected = new std::vector<TraceEvent>();
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(begin, end).scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

OperatorTrace::~OperatorTrace() {
  at::removeCallback(callback_);
  delete std::exchange(collected, nullptr);
}

std::vector<TraceEvent> OperatorTrace::take() { return std::exchange(*collected, {}); }

}  // namespace phalanx

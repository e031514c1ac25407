// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/deferred_gradients.h"

#include <memory>
#include <mutex>
#include <utility>

#include "framework/base/debug_info_kind.h"

namespace phalanx {
namespace {

// LibTorch passes this on to the threads that run a backward.
struct Deferral final : c10::DebugInfoBase {
  explicit Deferral(DeferredGradients* gradients) : to(gradients) {}

  DeferredGradients* to;  // null: only a forward is running so far
  std::mutex mutex;       // guards *to
};

Deferral* current() { return static_cast<Deferral*>(c10::ThreadLocalDebugInfo::get(kDeferredGradientsInfo)); }

}  // namespace

DeferGradients::DeferGradients(DeferredGradients& to)
    : guard_(kDeferredGradientsInfo, std::make_shared<Deferral>(&to)) {}

void DeferGradients::now_or_later(std::function<void()> compute) {
  Deferral* const deferral = current();
  if (deferral == nullptr || deferral->to == nullptr) return compute();
  const std::lock_guard lock(deferral->mutex);
  deferral->to->push_back(std::move(compute));
}

ExpectDeferral::ExpectDeferral() : guard_(kDeferredGradientsInfo, std::make_shared<Deferral>(nullptr)) {}

bool ExpectDeferral::any() { return current() != nullptr; }

}  // namespace phalanx

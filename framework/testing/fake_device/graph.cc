// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_device/graph.h"

#include <c10/util/Exception.h>

#include <mutex>
#include <utility>

#include "framework/testing/fake_device/memory.h"

namespace phalanx::testing {
namespace {

std::mutex mutex;
FakeGraph* recording = nullptr;
thread_local int wholes = 0;

}  // namespace

void FakeGraph::capture_begin(c10::MempoolId_t, at::GraphCaptureMode) {
  const std::lock_guard lock(mutex);
  TORCH_CHECK(recording == nullptr, "another graph is being recorded");
  memory_before_ = save_fake_memory();
  recording = this;
}

void FakeGraph::capture_end() {
  const std::lock_guard lock(mutex);
  TORCH_CHECK(recording == this, "this graph is not being recorded");
  recording = nullptr;
  restore_fake_memory(std::exchange(memory_before_, {}));
}

void FakeGraph::replay() {
  for (const auto& call : calls_) call();
}

bool FakeGraph::records() {
  const std::lock_guard lock(mutex);
  return recording != nullptr && wholes == 0;
}

FakeGraph::Whole::Whole() : recorded_(records()) { ++wholes; }
FakeGraph::Whole::~Whole() { --wholes; }

void FakeGraph::Whole::add(std::function<void()> call) const {
  if (!recorded_) return;
  const std::lock_guard lock(mutex);
  recording->calls_.push_back(std::move(call));
}

FakeGraph::~FakeGraph() {
  const std::lock_guard lock(mutex);
  if (recording == this) recording = nullptr;
}

}  // namespace phalanx::testing

// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/pretend/graph.h"

#include <c10/util/Exception.h>

#include <mutex>
#include <utility>

#include "framework/testing/pretend/memory.h"

namespace phalanx::testing {
namespace {

std::mutex mutex;
PretendedGraph* recording = nullptr;
thread_local int wholes = 0;

}  // namespace

void PretendedGraph::capture_begin(c10::MempoolId_t, at::GraphCaptureMode) {
  const std::lock_guard lock(mutex);
  TORCH_CHECK(recording == nullptr, "another graph is being recorded");
  memory_before_ = save_pretended_memory();
  recording = this;
}

void PretendedGraph::capture_end() {
  const std::lock_guard lock(mutex);
  TORCH_CHECK(recording == this, "this graph is not being recorded");
  recording = nullptr;
  restore_pretended_memory(std::exchange(memory_before_, {}));
}

void PretendedGraph::replay() {
  for (const auto& call : calls_) call();
}

bool PretendedGraph::records() {
  const std::lock_guard lock(mutex);
  return recording != nullptr && wholes == 0;
}

PretendedGraph::Whole::Whole() : recorded_(records()) { ++wholes; }
PretendedGraph::Whole::~Whole() { --wholes; }

void PretendedGraph::Whole::add(std::function<void()> call) const {
  if (!recorded_) return;
  const std::lock_guard lock(mutex);
  recording->calls_.push_back(std::move(call));
}

PretendedGraph::~PretendedGraph() {
  const std::lock_guard lock(mutex);
  if (recording == this) recording = nullptr;
}

}  // namespace phalanx::testing

// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_device/graph.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <mutex>
#include <thread>
#include <utility>

#include "framework/testing/fake_device/memory.h"

namespace phalanx::testing {
namespace {

std::mutex mutex;
FakeGraph* recording = nullptr;
std::thread::id recorder;  // the thread that has begun the recording
thread_local int wholes = 0;

c10::Stream stream_of_this_thread() {
  const c10::impl::VirtualGuardImpl guard(c10::kCUDA);
  return guard.getStream(guard.getDevice());
}

}  // namespace

void FakeGraph::capture_begin() {
  const c10::Stream stream = stream_of_this_thread();
  TORCH_CHECK(stream.id() != 0, "graphs cannot be recorded on the default stream");
  Streams::global().synchronize_device(stream.device_index());  // what is pending is no part of the graph
  const std::lock_guard lock(mutex);
  TORCH_CHECK(recording == nullptr, "another graph is being recorded");
  memory_before_ = save_fake_memory();
  pool_ = begin_pool();
  recording = this;
  recorder = std::this_thread::get_id();
}

void FakeGraph::capture_end() {
  const std::lock_guard lock(mutex);
  TORCH_CHECK(recording == this, "this graph is not being recorded");
  recording = nullptr;
  end_pool();
  restore_fake_memory(std::exchange(memory_before_, {}));
}

void FakeGraph::replay() {
  auto& streams = Streams::global();
  const c10::Stream stream = stream_of_this_thread();
  const int number = streams.number_of(stream.device_index(), stream.id());
  streams.count_launch();
  streams.uses({.name = "a replay of a graph", .stream = number, .accesses = accesses_});
  for (const auto& call : calls_) {
    if (call.polled) {
      streams.launch_polled({.name = call.name, .stream = number, .accesses = {}}, call.polled());
    } else {
      streams.launch({.name = "a replay of a graph", .stream = number, .accesses = {}}, call.body);
    }
  }
}

bool FakeGraph::records() {
  const std::lock_guard lock(mutex);
  return recording != nullptr && wholes == 0;
}

void FakeGraph::refuse_while_recording(std::string_view call) {
  const std::lock_guard lock(mutex);
  TORCH_CHECK(recording == nullptr || recorder != std::this_thread::get_id(), call,
              ": operation not permitted when stream is capturing");
}

FakeGraph::Whole::Whole() : recorded_(records()) { ++wholes; }
FakeGraph::Whole::~Whole() { --wholes; }

void FakeGraph::Whole::add(std::function<void()> call) const {
  if (!recorded_) return;
  const std::lock_guard lock(mutex);
  recording->calls_.push_back({.body = std::move(call), .polled = nullptr, .name = {}});
}

void FakeGraph::Whole::uses(const std::vector<Access>& accesses) const {
  if (!recorded_) return;
  const std::lock_guard lock(mutex);
  recording->accesses_.insert(recording->accesses_.end(), accesses.begin(), accesses.end());
}

void FakeGraph::add_polled(std::string_view name, std::function<Streams::Poll()> make, std::vector<Access> accesses) {
  const std::lock_guard lock(mutex);
  TORCH_CHECK(recording != nullptr, "no graph is being recorded");
  recording->calls_.push_back({.body = nullptr, .polled = std::move(make), .name = name});
  recording->accesses_.insert(recording->accesses_.end(), accesses.begin(), accesses.end());
}

FakeGraph::~FakeGraph() {
  {
    const std::lock_guard lock(mutex);
    if (recording == this) {
      recording = nullptr;
      end_pool();
    }
  }
  if (pool_ != 0) free_pool(pool_);
}

}  // namespace phalanx::testing

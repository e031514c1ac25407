// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/watched_graph.h"

#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "framework/backends/nccl/plugin.h"

namespace phalanx::nccl {
namespace {

struct OperationsOfGroup {
  std::shared_ptr<Group> group;
  std::vector<Call> calls;
};
using OperationsInGraph = std::vector<OperationsOfGroup>;

// The graphs that are being recorded, by the number that CUDA gives to a recording. Backward records in threads of
// LibTorch, so a variable of the thread would not do.
struct Recordings {
  std::mutex mutex;
  std::map<unsigned long long, OperationsInGraph*> by_number;
};

// Never destroyed: threads may record until the process ends.
Recordings& recordings() {
  static auto& all = *new Recordings;
  return all;
}

unsigned long long number_of_recording(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  (void)cudaStreamGetCaptureInfo(stream, &status, &number);
  return number;
}

class WatchedGraph final : public DeviceGraph {
 public:
  explicit WatchedGraph(std::unique_ptr<DeviceGraph> graph) : graph_(std::move(graph)) {}
  ~WatchedGraph() override { stop_listening(); }

  void capture_begin() override {
    operations_.clear();
    graph_->capture_begin();
    const auto number = number_of_recording(c10::cuda::getCurrentCUDAStream().stream());
    const std::lock_guard lock(recordings().mutex);
    recordings().by_number[number] = &operations_;
  }

  void capture_end() override {
    stop_listening();
    graph_->capture_end();
  }

  void replay() override {
    for (const auto& [group, calls] : operations_) group->throw_if_broken();
    graph_->replay();
    for (const auto& [group, calls] : operations_) group->watch_replay(calls);
  }

 private:
  void stop_listening() {
    const std::lock_guard lock(recordings().mutex);
    std::erase_if(recordings().by_number, [this](const auto& one) { return one.second == &operations_; });
  }

  OperationsInGraph operations_;
  std::unique_ptr<DeviceGraph> graph_;  // ends before the groups
};

}  // namespace

std::unique_ptr<DeviceGraph> make_watched(std::unique_ptr<DeviceGraph> graph) {
  return std::make_unique<WatchedGraph>(std::move(graph));
}

void add_to_graph(cudaStream_t stream, std::shared_ptr<Group> group, const Call& call) {
  const auto number = number_of_recording(stream);
  const std::lock_guard lock(recordings().mutex);
  const auto found = recordings().by_number.find(number);
  if (found == recordings().by_number.end()) return;
  OperationsInGraph& operations = *found->second;
  auto of_group = std::ranges::find(operations, group, &OperationsOfGroup::group);
  if (of_group == operations.end()) of_group = operations.insert(of_group, {std::move(group), {}});
  of_group->calls.push_back(call);
}

}  // namespace phalanx::nccl

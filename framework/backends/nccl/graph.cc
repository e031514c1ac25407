// SPDX-License-Identifier: Apache-2.0
#include <ATen/core/GraphImplInterface.h>
#include <ATen/cuda/CUDAGraph.h>

#include <memory>
#include <string>

#include "framework/backends/nccl/plugin.h"

namespace phalanx::nccl {
namespace {

cudaStreamCaptureMode mode_of(at::GraphCaptureMode mode) {
  switch (mode) {
    case at::GraphCaptureMode::ThreadLocal:
      return cudaStreamCaptureModeThreadLocal;
    case at::GraphCaptureMode::Relaxed:
      return cudaStreamCaptureModeRelaxed;
    default:
      return cudaStreamCaptureModeGlobal;
  }
}

class Graph final : public at::GraphImplInterface {
 public:
  explicit Graph(const at::GraphImplArgs& args) : graph_(args.keep_graph) {}

  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode mode) override {
    graph_.capture_begin(pool, mode_of(mode));
  }
  void capture_end() override { graph_.capture_end(); }
  void instantiate() override { graph_.instantiate(); }
  void replay() override { graph_.replay(); }
  void reset() override { graph_.reset(); }
  c10::MempoolId_t pool() const override { return graph_.pool(); }
  void enable_debug_mode() override { graph_.enable_debug_mode(); }
  void debug_dump(const std::string& path) override { graph_.debug_dump(path); }

 private:
  mutable at::cuda::CUDAGraph graph_;
};

}  // namespace

void register_graphs() {
  static const bool once = [] {
    if (at::has_graph_impl(c10::kCUDA)) return false;
    at::GraphImplRegistry()->Register("CUDA", [](at::GraphImplArgs args) { return std::make_unique<Graph>(args); });
    return true;
  }();
  (void)once;
}

}  // namespace phalanx::nccl

// SPDX-License-Identifier: Apache-2.0
#include <ATen/cuda/CUDAGraph.h>

#include <memory>

#include "framework/backends/nccl/plugin.h"

namespace phalanx::nccl {
namespace {

class CudaGraph final : public DeviceGraph {
 public:
  void capture_begin() override { graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal); }
  void capture_end() override { graph_.capture_end(); }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

}  // namespace

std::unique_ptr<DeviceGraph> make_graph() { return make_watched(std::make_unique<CudaGraph>()); }

}  // namespace phalanx::nccl

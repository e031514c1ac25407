// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::nccl {

/// LibTorch's graphs of devices (at::GraphImplInterface) are those of CUDA from now on, which it has but does not
/// register itself. The plug-in's function "phalanx_cuda_register_graphs". Thread-safe.
void register_graphs();

}  // namespace phalanx::nccl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// While one lives, what this process does has a name in NVIDIA's tools, such as Nsight Systems: operators of LibTorch,
/// forward and backward, and NamedRange. In all threads; costs a call into NVTX for each.
class NvtxRanges {
 public:
  /// Throws ConfigError where LibTorch has no NVTX: without CUDA.
  NvtxRanges();
  ~NvtxRanges();
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;

 private:
  std::uint64_t callback_;
};

}  // namespace phalanx

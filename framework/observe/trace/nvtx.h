// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// While an object of this class exists, operators of LibTorch (forward and backward) and NamedRanges have names in
/// NVIDIA's tools, such as Nsight Systems. Applies to all threads. Costs a call into NVTX for each name.
class NvtxRanges {
 public:
  /// Throws ConfigError if LibTorch has no NVTX, because it was built without CUDA.
  NvtxRanges();
  ~NvtxRanges();
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;

 private:
  std::uint64_t callback_;
};

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace phalanx {

/// Device memory that ranks of one host, each a process, open in each other: CUDA IPC. They may have one device or
/// several. One thread at a time.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;

  virtual at::Device device() const = 0;

  /// Zeroed bytes, [bytes] uint8, that others can open. Since others may still have them open when the last tensor that
  /// views them is gone, they are given back when the process ends. Throws CommError where there are not enough.
  virtual at::Tensor allocate(std::int64_t bytes) = 0;

  /// Gives memory of allocate() back at once, which nobody has open any more.
  virtual void give_back(const at::Tensor& memory) = 0;

  /// What another rank opens memory of allocate() with; `memory` is all of it.
  virtual std::string handle_of(const at::Tensor& memory) = 0;

  /// The memory of another rank, [bytes] uint8, for as long as a tensor views it. Throws CommError.
  virtual at::Tensor open(const std::string& handle, std::int64_t bytes) = 0;
};

}  // namespace phalanx

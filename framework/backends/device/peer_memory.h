// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace phalanx {

/// Device memory that the ranks of one host, which are processes, open in each other by CUDA IPC. They may share one
/// device or have several. Not thread-safe.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;

  virtual at::Device device() const = 0;

  /// Returns zeroed memory, [bytes] uint8, that other ranks can open. It is freed only when the process ends, since
  /// others may still have it open after the last tensor that views it is gone. Throws CommError if there is not enough
  /// memory.
  virtual at::Tensor allocate(std::int64_t bytes) = 0;

  /// Frees memory from allocate() at once. No other rank may have it open.
  virtual void free(const at::Tensor& memory) = 0;

  /// Returns the handle with which another rank opens memory from allocate(). `memory` is all of that memory.
  virtual std::string handle_of(const at::Tensor& memory) = 0;

  /// Opens the memory of another rank and returns it as [bytes] uint8. It stays open as long as a tensor views it.
  /// Throws CommError.
  virtual at::Tensor open(const std::string& handle, std::int64_t bytes) = 0;
};

}  // namespace phalanx

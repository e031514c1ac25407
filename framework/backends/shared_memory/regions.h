// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "framework/backends/shared_memory/location.h"

namespace phalanx::shared_memory {

/// The memory that a communicator has allocated and that is still in use. The parts of all ranks in a region lie next
/// to each other in one mapping. Thread-safe: any thread may free tensors.
class Regions {
 public:
  struct Region {
    std::uint32_t id = 0;
    std::byte* base = nullptr;  // part of rank 0
    std::size_t stride = 0;     // offset from one rank's part to the next
  };

  /// Takes ownership of `mapping` and returns this rank's part. The region is removed when the last copy of the result
  /// is gone.
  static std::shared_ptr<void> add(const std::shared_ptr<Regions>& regions, const Region& region, int rank,
                                   std::shared_ptr<void> mapping);

  /// Returns the location of [begin, begin + bytes) in this rank's parts; region 0 if no part contains all of it.
  Location locate(const void* begin, std::size_t bytes) const;

  /// Returns the region with this id; its base is null if the id is unknown here.
  Region find(std::uint32_t id) const;

 private:
  void remove(const std::byte* part);

  mutable std::mutex mutex_;
  std::map<const std::byte*, Region> parts_;  // by the beginning of this rank's part
};

}  // namespace phalanx::shared_memory

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "framework/backends/shared_memory/location.h"

namespace phalanx::shared_memory {

/// The memory that a communicator has allocated and somebody still holds: every rank's part of each region, side by
/// side in one mapping. Thread-safe: tensors are freed by any thread.
class Regions {
 public:
  struct Region {
    std::uint32_t id = 0;
    std::byte* base = nullptr;  // part of rank 0
    std::size_t stride = 0;     // from one rank's part to the next
  };

  /// Takes over `mapping`; returns this rank's part. The region is forgotten when the last copy of that is gone.
  static std::shared_ptr<void> add(const std::shared_ptr<Regions>& regions, const Region& region, int rank,
                                   std::shared_ptr<void> mapping);

  /// Where [begin, begin + bytes) lies in this rank's parts; region 0 if it is not, as a whole, in one of them.
  Location locate(const void* begin, std::size_t bytes) const;

  /// The region with this id; null base if it is not known here.
  Region find(std::uint32_t id) const;

 private:
  void remove(const std::byte* part);

  mutable std::mutex mutex_;
  std::map<const std::byte*, Region> parts_;  // by the begin of this rank's part
};

}  // namespace phalanx::shared_memory

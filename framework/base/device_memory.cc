// SPDX-License-Identifier: Apache-2.0
#include "framework/base/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

namespace phalanx {

std::int64_t peak_bytes(const c10::Device& device) {
  if (device.is_cpu()) return 0;
  const auto stats = at::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)].peak;
}

void release_cached_memory(const c10::Device& device) {
  if (!device.is_cpu()) at::getDeviceAllocator(device.type())->emptyCache();
}

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

namespace phalanx::shared_memory {

/// Copies data that this core will not read again. It bypasses the caches (non-temporal stores) if the CPU supports it.
/// Ordinary stores would first fetch every line, possibly from the cache of the peer that read it last. As with memcpy,
/// the data is visible to others after the next release store.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

/// Returns the size in bytes of the largest cache that cores share.
std::size_t cache_bytes();

/// Copies the runs of one operation. It bypasses the caches if they cannot hold the data that all ranks together touch;
/// otherwise lines would be fetched only to be overwritten and evicted.
class BulkCopy {
 public:
  /// `touched` is the number of bytes that all ranks of this host read and write.
  explicit BulkCopy(std::size_t touched) : streams_(touched > cache_bytes()) {}

  void operator()(std::byte* to, const std::byte* from, std::size_t bytes) const {
    if (bytes == 0 || to == from) return;
    if (streams_) {
      stream_copy(to, from, bytes);
    } else {
      std::memcpy(to, from, bytes);
    }
  }

 private:
  bool streams_;
};

}  // namespace phalanx::shared_memory

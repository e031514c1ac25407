// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>

namespace phalanx::shared_memory {

/// memcpy for what this core will not read again: past its caches (non-temporal stores), where the machine can.
/// Ordinary stores would first fetch every line, from the cache of the peer that has read it last where there is one.
/// What is copied is visible to others after the next release store, as with memcpy.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

/// Bytes of the largest cache that cores share.
std::size_t cache_bytes();

/// Copies the runs of one operation: past the caches where they would not hold what all ranks together touch in it,
/// since lines would be fetched to be overwritten and then thrown out.
class BulkCopy {
 public:
  /// `touched`: bytes that all ranks of this host read and write.
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

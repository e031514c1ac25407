// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/compression/compressor_table.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace phalanx {

CompressorTable::CompressorTable(Compressors::Choice compression, std::size_t capacity)
    : compression_(std::move(compression)), capacity_(capacity) {
  if (capacity == 0) throw std::invalid_argument("compression: a table for 0 tensors");
}

std::shared_ptr<Compressor> CompressorTable::of(const at::Tensor& tensor,
                                                std::vector<std::vector<std::int64_t>> shapes) {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return is(entry, tensor); });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return entries_.front().compressor;
  }
  std::shared_ptr<Compressor> compressor = compression_.make({tensor.numel(), std::move(shapes)});
  // An entry whose tensor was replaced at this address drops its compressor, but keeps its place in the list. Reuse of
  // an address depends on each rank's allocator and must not change which entry is evicted next.
  for (auto& entry : entries_) {
    if (entry.begin == tensor.const_data_ptr()) entry.compressor = nullptr;
  }
  entries_.push_front({tensor.const_data_ptr(), tensor.numel(), tensor.storage().getWeakStorageImpl(), compressor});
  if (entries_.size() > capacity_) entries_.pop_back();
  return compressor;
}

bool CompressorTable::is(const Entry& entry, const at::Tensor& tensor) {
  return entry.compressor && entry.begin == tensor.const_data_ptr() && entry.elements == tensor.numel() &&
         !entry.storage.expired() && entry.storage._unsafe_get_target() == tensor.storage().unsafeGetStorageImpl();
}

}  // namespace phalanx

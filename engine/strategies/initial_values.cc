// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/initial_values.h"

namespace phalanx {

std::vector<Slice> broadcast_all(const FlatParameters& parameters, Communicator& group) {
  std::vector<Slice> slices;
  for (const auto& bucket : parameters.buckets()) {
    group.broadcast(bucket.values, 0).wait();
    slices.push_back(whole(bucket));
  }
  return slices;
}

std::vector<Slice> share_memory(const FlatParameters& parameters, Communicator& group) {
  std::vector<Slice> slices;
  for (const auto& bucket : parameters.buckets()) {
    const at::Tensor memory = group.allocate_shared(bucket.values.sizes(), bucket.values.options());
    if (group.rank() == 0) memory.copy_(bucket.values);
    view_values(bucket, memory);
    slices.push_back(whole(bucket));
  }
  group.barrier().wait();
  return slices;
}

}  // namespace phalanx

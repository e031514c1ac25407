#include "engine/sync/synchronizer.h"

namespace phalanx {

std::vector<Slice> broadcast_all(const FlatParameters& parameters, Communicator& group) {
  std::vector<Slice> slices;
  for (const auto& bucket : parameters.buckets()) {
    group.broadcast(bucket.values, 0).wait();
    slices.push_back(whole(bucket));
  }
  return slices;
}

void share_memory(const FlatParameters& parameters, Communicator& group) {
  for (const auto& bucket : parameters.buckets()) {
    const at::Tensor memory = group.allocate_shared(bucket.values.sizes(), bucket.values.options());
    if (group.rank() == 0) memory.copy_(bucket.values);
    view_values(bucket, memory);
  }
  group.barrier().wait();
}

}  // namespace phalanx

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

}  // namespace phalanx

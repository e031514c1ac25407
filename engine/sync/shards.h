#pragma once

#include <cstdint>
#include <vector>

#include "engine/sync/synchronizer.h"

namespace phalanx {

/// A bucket in as many contiguous parts as there are ranks, nearly equal, some of them empty where it is short.
///
/// Cut anywhere, they are cut at multiples of 16 elements, so that vectorised updates of the parts round as that of the
/// whole does. Cut between parameters, each border lies between the two parameters where it is nearest to an equal cut.
class Shards {
 public:
  Shards(const Slice& bucket, int ranks, Cut cut);

  std::int64_t begin(int rank) const { return begins_[rank]; }
  std::int64_t count(int rank) const { return counts_[rank]; }
  const std::vector<std::int64_t>& counts() const { return counts_; }

 private:
  std::vector<std::int64_t> begins_, counts_;
};

}  // namespace phalanx

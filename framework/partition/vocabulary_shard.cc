// SPDX-License-Identifier: Apache-2.0
#include "framework/partition/vocabulary_shard.h"

#include <numeric>

namespace phalanx {

std::int64_t VocabularyShard::begin() const {
  return std::accumulate(sizes.begin(), sizes.begin() + group->rank(), std::int64_t{0});
}

std::int64_t VocabularyShard::classes() const { return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}); }

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// The sharding of logits, [..., classes], over the ranks of a group: rank r has the scores of the `sizes[r]`
/// classes that follow the classes of the ranks before it. An example is the logits of a language model over its
/// vocabulary, of which all ranks together have one copy.
struct VocabularyShard {
  CommunicatorPtr group;
  std::vector<std::int64_t> sizes;

  std::int64_t begin() const;  // the first class of this rank
  std::int64_t classes() const;
};
using VocabularyShardPtr = std::shared_ptr<const VocabularyShard>;

}  // namespace phalanx

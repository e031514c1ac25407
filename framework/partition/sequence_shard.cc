// SPDX-License-Identifier: Apache-2.0
#include "framework/partition/sequence_shard.h"

#include <ATen/ops/concat.h>

#include <stdexcept>
#include <string>

namespace phalanx {

bool can_shard_sequence(std::int64_t length, const Communicator& group) {
  return group.size() == 1 || length % (2 * group.size()) == 0;
}

at::Tensor shard_sequence(const at::Tensor& whole, std::int64_t dim, const Communicator& group) {
  if (group.size() == 1) return whole;
  const auto length = whole.size(dim), chunks = std::int64_t{2} * group.size();
  if (!can_shard_sequence(length, group)) {
    throw std::invalid_argument(std::to_string(length) + " positions cannot be divided into " + std::to_string(chunks) +
                                " equal chunks, two for each of " + std::to_string(group.size()) + " ranks");
  }
  const auto chunk = length / chunks, early = std::int64_t{group.rank()}, late = chunks - 1 - early;
  return at::concat({whole.narrow(dim, early * chunk, chunk), whole.narrow(dim, late * chunk, chunk)}, dim);
}

}  // namespace phalanx

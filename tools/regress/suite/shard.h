// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace phalanx::regress {

/// One of several parts of a suite, which run in different places.
struct Shard {
  std::size_t number = 1;  // from 1
  std::size_t count = 1;

  /// Returns true if the case at this index, from 0, belongs to the shard. Neighbours belong to different shards, which
  /// spreads similar cases.
  bool has(std::size_t index) const { return index % count == number - 1; }

  std::string text() const { return std::to_string(number) + "/" + std::to_string(count); }
};

/// Parses "2/5". Throws ConfigError for anything that is not a shard.
Shard parse_shard(const std::string& text);

}  // namespace phalanx::regress

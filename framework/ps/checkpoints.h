// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/ps/shard_host.h"

namespace phalanx::ps {

/// The checkpoints of one server in its folder: `shards-NUMBER.safetensors`, in which tensor "description" is
/// HostState::description, and `shards-NUMBER.json` with its size and CRC-32C, written last: without it there is no
/// checkpoint. One process at a time uses the folder.
class Checkpoints {
 public:
  /// Makes the folder. Throws DataError where it cannot.
  explicit Checkpoints(const std::string& folder);

  /// A state as the file that it becomes, in place of what `file` holds: a copy.
  static void lay_out(const HostState& state, std::string& file);

  /// Writes one more, and removes all but the last two. Killed anywhere, the older ones or the new one are there.
  /// Throws DataError, for example of a full disk, and leaves the older ones as they were.
  void write(const std::string& file);

  /// The newest one that is whole; `refuse` is told of others. Nothing where there is none.
  std::optional<HostState> newest(const std::function<void(const std::string& why)>& refuse);

 private:
  std::string path_of(std::int64_t number, const char* ending) const;
  std::vector<std::int64_t> numbers() const;  // rising
  HostState read(std::int64_t number) const;

  std::string folder_;
  std::int64_t next_ = 1;
};

}  // namespace phalanx::ps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/ps/shards/shard_host.h"

namespace phalanx::ps {

/// Reads and writes the checkpoints of one server in its folder. A checkpoint consists of `shards-NUMBER.safetensors`,
/// in which tensor "description" is HostState::description, and `shards-NUMBER.json`, which has its size and CRC-32C.
/// The JSON file is written last; without it there is no checkpoint. Only one process at a time may use the folder.
class Checkpoints {
 public:
  /// Creates the folder if necessary. Throws DataError if that fails.
  explicit Checkpoints(const std::string& folder);

  /// Copies a state into `file`, in the format in which it is stored, and replaces the former contents of `file`.
  static void lay_out(const HostState& state, std::string& file);

  /// Writes a new checkpoint and removes all but the last two. If the process is killed at any point, the older
  /// checkpoints or the new one still exist. Throws DataError if the checkpoint cannot be written, for example because
  /// the disk is full; the older ones are then unchanged.
  void write(const std::string& file);

  /// Returns the newest intact checkpoint, or nothing. Calls `refuse` for each newer one that is damaged.
  std::optional<HostState> newest(const std::function<void(const std::string& why)>& refuse);

 private:
  std::string path_of(std::int64_t number, const char* ending) const;
  std::vector<std::int64_t> numbers() const;  // ascending
  HostState read(std::int64_t number) const;

  std::string folder_;
  std::int64_t next_ = 1;
};

}  // namespace phalanx::ps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "framework/ps/checkpoints/checkpoint_writer.h"
#include "framework/ps/protocol/deadline.h"
#include "framework/ps/server/server.h"
#include "framework/ps/shards/shard_host.h"

namespace phalanx::ps {

/// Decides when a server writes checkpoints. Must be used only by the server's thread.
class ScheduledCheckpoints {
 public:
  /// Loads the newest usable state in the folder into `host`, which must be empty. Throws Error if the folder has
  /// checkpoints but none can be used.
  ScheduledCheckpoints(const CheckpointOptions& options, ShardHost& host);

  Clock::time_point next() const { return next_; }

  /// Starts the next checkpoint if it is due.
  void write_if_due();

  /// Writes the last checkpoint, after the last change. Blocks. Throws DataError, "FILE: why", if it cannot be written.
  void finish();

 private:
  bool has_unwritten() const { return host_.changes() != changes_written_ || !writer_->failure().empty(); }

  CheckpointOptions options_;
  ShardHost& host_;
  std::unique_ptr<CheckpointWriter> writer_;
  Clock::time_point next_;
  std::int64_t changes_written_ = 0;
};

}  // namespace phalanx::ps

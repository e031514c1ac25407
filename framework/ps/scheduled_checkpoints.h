// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "framework/ps/checkpoint_writer.h"
#include "framework/ps/deadline.h"
#include "framework/ps/server.h"
#include "framework/ps/shard_host.h"

namespace phalanx::ps {

/// When a server writes its checkpoints. For the server's thread.
class ScheduledCheckpoints {
 public:
  /// Gives `host`, which holds nothing, the newest state in the folder. Throws Error where there are some and none can
  /// be used.
  ScheduledCheckpoints(const CheckpointOptions& options, ShardHost& host);

  Clock::time_point next() const { return next_; }

  /// Begins the next one where it is due.
  void tend();

  /// Writes the last one, once nothing changes any more. Blocks. Throws DataError, "FILE: why", if it cannot be
  /// written.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "framework/ps/checkpoints/checkpoints.h"

namespace phalanx::ps {

/// Writes checkpoints in its own thread. A failure, such as a full disk, is logged and does not end the server; the
/// next checkpoint is attempted as usual.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(Checkpoints checkpoints);

  /// Waits until a checkpoint that has been started is written or has failed.
  ~CheckpointWriter();

  /// Copies the current state of the host and starts writing it. Returns false if the previous checkpoint is still
  /// being written.
  bool begin(const ShardHost& host);

  /// Returns why the last checkpoint could not be written, or an empty string if it was written.
  std::string failure() const;

  /// Blocks until a checkpoint that has been started is written or has failed.
  void finish();

 private:
  void run();

  Checkpoints checkpoints_;
  std::string file_;  // belongs to the writing thread while busy_

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;
  std::string failure_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace phalanx::ps

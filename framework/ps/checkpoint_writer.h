// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "framework/ps/checkpoints.h"

namespace phalanx::ps {

/// Writes checkpoints in a thread of its own. What goes wrong is logged, and the next one is tried as if nothing had
/// been: a full disk ends no server.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(Checkpoints checkpoints);

  /// After what has been begun.
  ~CheckpointWriter();

  /// Copies what the host holds now, and begins to write it. False: it is still busy with the last one.
  bool begin(const ShardHost& host);

  /// Why the last one could not be written; empty: it could.
  std::string failure() const;

  /// Blocks until what has been begun is written, or has failed.
  void finish();

 private:
  void run();

  Checkpoints checkpoints_;
  std::string file_;  // the writing thread's while busy_

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;
  std::string failure_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace phalanx::ps

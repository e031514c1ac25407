// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/checkpoints/scheduled_checkpoints.h"

#include <exception>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/log.h"

namespace phalanx::ps {

ScheduledCheckpoints::ScheduledCheckpoints(const CheckpointOptions& options, ShardHost& host)
    : options_(options), host_(host), next_(after(options.every)) {
  Checkpoints checkpoints(options.folder);
  std::string refused;
  const auto state = checkpoints.newest([&refused](const std::string& why) {
    log_warning() << "parameter server: " << why;
    refused = why;
  });
  if (!state && !refused.empty()) {
    throw Error("none of the checkpoints in " + options.folder +
                " can be used; to start from the beginning, choose another folder. The last error: " + refused);
  }
  if (state) host_.load(*state);
  writer_ = std::make_unique<CheckpointWriter>(std::move(checkpoints));
  changes_written_ = host_.changes();
}

void ScheduledCheckpoints::write_if_due() {
  if (Clock::now() < next_) return;
  next_ = after(options_.every);
  if (!has_unwritten()) return;
  try {
    if (writer_->begin(host_)) {
      changes_written_ = host_.changes();
    } else {
      log_warning() << "parameter server: the last checkpoint is still being written; this one is skipped";
    }
  } catch (const std::exception& error) {
    log_error() << "parameter server: the state could not be copied for a checkpoint; the next one will be tried: "
                << error.what();
  }
}

void ScheduledCheckpoints::finish() {
  writer_->finish();
  if (has_unwritten()) writer_->begin(host_);
  writer_->finish();
  if (const auto failure = writer_->failure(); !failure.empty()) throw DataError(failure);
}

}  // namespace phalanx::ps

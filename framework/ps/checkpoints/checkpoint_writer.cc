// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/checkpoints/checkpoint_writer.h"

#include <exception>
#include <string>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "framework/base/log.h"

namespace phalanx::ps {

CheckpointWriter::CheckpointWriter(Checkpoints checkpoints) : checkpoints_(std::move(checkpoints)) {
  const BlockedSignals blocked;  // signals go to the threads that expect them
  thread_ = std::thread([this] { run(); });
}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool CheckpointWriter::begin(const ShardHost& host) {
  const std::lock_guard lock(mutex_);
  if (busy_) return false;
  Checkpoints::lay_out(host.state(), file_);
  busy_ = true;
  changed_.notify_all();
  return true;
}

std::string CheckpointWriter::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void CheckpointWriter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
}

void CheckpointWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return busy_ || stopping_; });
    if (!busy_) return;
    lock.unlock();
    std::string failure;
    try {
      checkpoints_.write(file_);
    } catch (const std::exception& error) {
      log_error() << "parameter server: a checkpoint could not be written; the next one will be tried: "
                  << error.what();
      failure = error.what();
    }
    lock.lock();
    failure_ = std::move(failure);
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace phalanx::ps

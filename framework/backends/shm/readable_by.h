// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <vector>

namespace phalanx::shm {

/// Allows the given processes to read the memory of this process while it lives, even if the system otherwise allows
/// only ancestors to do so (Linux's security module Yama). Linux stores either one such process or all: if the objects
/// of this process name more than one, all processes of this user are allowed. Thread-safe.
class ReadableBy {
 public:
  explicit ReadableBy(std::vector<pid_t> processes);
  ~ReadableBy();
  ReadableBy(const ReadableBy&) = delete;
  ReadableBy& operator=(const ReadableBy&) = delete;

 private:
  std::vector<pid_t> processes_;
};

}  // namespace phalanx::shm

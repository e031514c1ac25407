// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <vector>

namespace phalanx::shm {

/// While it lives, the given processes may read this one's memory even where the system lets only ancestors do so
/// (Linux's security module Yama). Linux keeps one such process, or all of them: all processes of this user may where
/// the objects of this process name more than one. Thread-safe.
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

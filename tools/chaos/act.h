// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "tools/bench_train/hosts.h"
#include "tools/chaos/attempt.h"
#include "tools/chaos/mounts.h"

namespace phalanx::chaos {

/// The run, and the means to cause faults in it.
struct Stage {
  Attempt& attempt;
  std::string run_folder;                     // identifies the processes of the run
  SmallDisk* disk = nullptr;                  // below the run folder, if the fault needs one
  const bench_train::Hosts* hosts = nullptr;  // if the fault needs hosts
  std::function<void()> go;                   // lets the rank that waits for this process go on
};

/// Causes the fault of this name, CausedBy::kDriver, which has just been announced by a rank, and calls `go`. Throws
/// Error if a program that it needs fails.
void act(const std::string& fault, const Stage& stage);

}  // namespace phalanx::chaos

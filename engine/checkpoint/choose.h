// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/run_state.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Where a run goes on.
struct Choice {
  std::optional<Checkpoint> checkpoint{};  // nothing: it begins
  std::vector<std::string> refused{};      // on rank 0: why newer checkpoints were not taken
};

/// Finds the checkpoint that `resume` asks for: "none"; "auto", the newest in `folder` that is whole, if there is any;
/// or a path of one. Rank 0 looks at every byte of it and compares it with the run (`identity`, names and shapes).
///
/// Throws, alike on all ranks, ConfigError where the checkpoint is of another run, and DataError where that of a path
/// is not whole, and where there are checkpoints but none that is whole. The message offers the newest one beside it
/// from which the run can go on. Collective.
Choice choose(const std::string& resume, const CheckpointFolder& folder, const Manifest::Words& identity,
              const RunState& state, Communicator& world);

}  // namespace phalanx

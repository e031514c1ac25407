// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/run_state.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The point from which a run continues.
struct Choice {
  std::optional<Checkpoint> checkpoint{};  // empty if the run starts from scratch
  std::vector<std::string> refused{};      // on rank 0: reasons why newer checkpoints were refused
};

/// Finds the checkpoint that `resume` specifies: "none"; "auto", the newest intact one in `folder`, if any; or the path
/// of one. Rank 0 verifies every byte of it and compares it with the run (`identity`, names and shapes).
///
/// Throws on all ranks: ConfigError if the checkpoint belongs to another run; DataError if the checkpoint at a path is
/// damaged, or if there are checkpoints but none of them is intact. The message names the newest other checkpoint from
/// which the run can continue. Collective.
Choice choose(const std::string& resume, const CheckpointFolder& folder, const Manifest::Strings& identity,
              const RunState& state, Communicator& world);

}  // namespace phalanx

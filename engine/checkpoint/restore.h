// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/run_state.h"

namespace phalanx {

/// Throws DataError where the checkpoint is of another model or another optimizer: it names the first parameter whose
/// name or shape differs, or the state that is missing.
void check_fits(const Checkpoint& checkpoint, const RunState& state);

/// Puts all of this rank's state back, on any number of ranks and however they share the update. Where replicas had
/// differed, this rank gets back that of rank `same_rank`, which is its own where as many ranks go on in the same way;
/// where there is none, all get the first. Throws DataError.
void restore(const Checkpoint& checkpoint, RunState& state, std::optional<int> same_rank);

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/run_state.h"
#include "framework/base/storage/safetensors.h"

namespace phalanx {

/// Throws DataError if the checkpoint belongs to another model or another optimizer, naming the first parameter whose
/// name or shape differs, or the missing state.
void check_fits(const Checkpoint& checkpoint, const RunState& state);

/// Restores all of this rank's state, on any number of ranks and with any division of the update. If replicas differed,
/// this rank gets the replica of rank `same_rank`, which is its own if the run resumes on the same number of ranks with
/// the same division. Without `same_rank`, all ranks get the first replica. Throws DataError.
void restore(const Checkpoint& checkpoint, RunState& state, std::optional<int> same_rank);

/// The open files of a checkpoint, by the rank that wrote them.
struct SavedFiles {
  std::vector<SafetensorsFile> weights{}, state{};
  int common = 0;  // the rank whose state is read where it is the same on all ranks
};

/// Restores the same from the files of ranks whose replicas were equal. `updates`: the optimizer's
/// (Manifest::updates). Throws DataError.
void restore(const SavedFiles& files, std::int64_t updates, RunState& state);

}  // namespace phalanx

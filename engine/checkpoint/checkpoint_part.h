// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "framework/base/storage/safetensors.h"
#include "framework/partition/placement.h"

namespace phalanx {

/// The tensors that the ranks of another run have saved for a part.
struct SavedRanks {
  int ranks = 0;                             // number of ranks of that run
  std::function<NamedTensors(int rank)> of;  // 0 <= rank < ranks; always 0 for a part that only rank 0 saves

  /// Fills `into` with a tensor, or with a part of it, from what all ranks have saved under its name, as a whole or as
  /// parts with to_text(Placement) appended to the name. Returns false and changes nothing if there is no tensor of
  /// this size. Throws DataError if some of its parts are missing.
  std::function<bool(const std::string& name, const Placement* part, const at::Tensor& into)> read{};
};

/// State other than parameters and optimizer that a resumed run continues with: random numbers, buffers, meters, a
/// schedule.
struct CheckpointPart {
  std::string name;                             // unique in a run
  std::function<NamedTensors()> save;           // returns the current state
  std::function<void(const SavedRanks&)> load;  // called on every rank
  bool every_rank = true;  // false if the state is the same on all ranks, so that only rank 0 saves it
};

}  // namespace phalanx

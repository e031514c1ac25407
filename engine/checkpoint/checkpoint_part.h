// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "framework/base/storage/safetensors.h"
#include "framework/parallel/placement.h"

namespace phalanx {

/// What the ranks of another run have saved of a part.
struct SavedRanks {
  int ranks = 0;                             // how many there were
  std::function<NamedTensors(int rank)> of;  // 0 <= rank < ranks; of a part that rank 0 saves alone: 0

  /// Fills `into` with a tensor, or with a part of it, from what all ranks have saved under its name, whole or as parts
  /// with to_text(Placement) behind the name. False, and nothing is changed, where there is none of this size. Throws
  /// DataError where some of its parts are missing.
  std::function<bool(const std::string& name, const Placement* part, const at::Tensor& into)> read{};
};

/// Something beside parameters and optimizer that goes on where it was: random numbers, buffers, meters, a schedule.
struct CheckpointPart {
  std::string name;                             // one of a run's
  std::function<NamedTensors()> save;           // as it is now
  std::function<void(const SavedRanks&)> load;  // on every rank
  bool every_rank = true;                       // false: alike on all ranks, so that rank 0 saves it
};

}  // namespace phalanx

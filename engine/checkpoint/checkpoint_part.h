#pragma once

#include <functional>
#include <string>

#include "framework/base/storage/safetensors.h"

namespace phalanx {

/// What the ranks of another run have saved of a part.
struct SavedRanks {
  int ranks = 0;                             // how many there were
  std::function<NamedTensors(int rank)> of;  // 0 <= rank < ranks; of a part that rank 0 saves alone: 0
};

/// Something beside parameters and optimizer that goes on where it was: random numbers, buffers, meters, a schedule.
struct CheckpointPart {
  std::string name;                             // one of a run's
  std::function<NamedTensors()> save;           // as it is now
  std::function<void(const SavedRanks&)> load;  // on every rank
  bool every_rank = true;                       // false: alike on all ranks, so that rank 0 saves it
};

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/checkpoint/run_state.h"

namespace phalanx {

/// One rank's share of a checkpoint, copied, as the two files that it becomes.
///
///   weights  whole parameters by their names; on rank 0 the model's buffers too: what Python loads. Where ranks have
///            parts of the values alone, these (stored_name(), with the shape)
///   state    optimizer/KIND/PARAMETER        what the optimizer remembers of it, in its shape
///            optimizer/KIND/PARAMETER[A:B]   the same of its elements from A to B
///            part/PART/TENSOR                the rank's own
///            replica/...                     parameters and optimizer of this rank, where replicas differ
///
/// Of a parameter of which this rank has a part, PARAMETER is its name with the part behind it (to_text(Placement)),
/// also in the file of weights.
struct Snapshot {
  std::string weights, state;
};

/// Copies what `plan` gives to this rank into `snapshot`, whose memory is used again.
void take_snapshot(const RunState& state, const WritePlan& plan, bool replicas_equal, Snapshot& snapshot);

}  // namespace phalanx

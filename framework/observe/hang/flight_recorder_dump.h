// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/observe/hang/picture.h"

namespace phalanx {

/// A dump of PyTorch's flight recorder (TORCH_FR_BUFFER_SIZE, earlier TORCH_NCCL_TRACE_BUFFER_SIZE), as
/// torch.distributed writes it for each rank: a pickle.
struct FlightRecorderDump {
  std::string source{};  // its file, for messages
  int rank = 0;
  double written = 0;  // seconds since the epoch
  std::string pickle{};
};

/// Reads the dump of a rank. The file's name must end with the number of the rank, such as nccl_trace_rank_12, and its
/// time of modification is taken as the time of the dump, because dumps do not have it. Throws DataError.
FlightRecorderDump read_flight_recorder_dump(const std::string& path);

/// Returns the picture of a job of PyTorch from the dumps of its ranks, for explain(). It has the operations of each
/// rank and the members of groups, but nothing about processes. The default process group is called "world". The oldest
/// operation of a group that is not completed counts as running. Nothing of a pickle is executed; time and memory are
/// proportional to its bytes. Throws DataError, with the file and the place in it, for a pickle that has anything but
/// plain values, for a dump of another format, and for dumps that do not belong to the same job.
JobPicture picture_of_dumps(const std::vector<FlightRecorderDump>& dumps);

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "framework/comm/operation.h"

namespace phalanx::nccl {

/// Where an operation of a group goes. The stream is the current one.
struct Turn {
  ncclComm_t comm;
  cudaStream_t stream;
  int rank, size;
};

/// Gives one operation, of those that has_native() names, to the stream. What NCCL lacks is made of its sends and
/// receives, or of its reductions and broadcasts of single parts, all in one launch. Throws CommError.
///
/// | | by | bytes that a rank sends; n: of the whole tensor, P: ranks |
/// |---|---|---|
/// | all_reduce, broadcast, reduce, equal parts of reduce_scatter and all_gather | NCCL's own | as its algorithm: 2 n
/// (P - 1) / P for a ring's all_reduce | | uneven reduce_scatter | a reduce for each part | n (P - 1) / P | | uneven
/// all_gather | a broadcast for each part | n (P - 1) / P | | gather | sends | its own part | | scatter | sends | root:
/// all parts but its own | | all_to_all | sends | all parts but its own |
void execute(const Turn& turn, const Operation& operation);

}  // namespace phalanx::nccl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/build/cut_blocks.h"
#include "engine/precision/arithmetic.h"
#include "engine/step/row_spec.h"
#include "engine/task/task.h"
#include "framework/comm/mesh/mesh.h"
#include "models/model.h"

namespace phalanx {

/// The costs and the outputs of a model's blocks.
struct MeasuredBlocks {
  std::vector<BlockCost> costs;      // of each block, over all ranks
  std::vector<RowSpec> outputs;      // of each block
  std::vector<RowSpec> predictions;  // of the task, from the output of the last block
};

/// Runs the blocks of a model that is a BlockChain once, with an input of zeros in evaluation mode, so that buffers and
/// random numbers do not change. If the positions of a sequence are sharded between ranks, the input has the positions
/// of this rank. All ranks return the same costs, even if they hold parts of different cost. Collective.
MeasuredBlocks measure_blocks(Model& model, const Task& task, const Mesh& mesh, Arithmetic arithmetic);

}  // namespace phalanx

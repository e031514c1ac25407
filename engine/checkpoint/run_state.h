#pragma once

#include <vector>

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/checkpoint/division.h"
#include "engine/optim/optimizer.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/flat_parameters.h"

namespace phalanx {

/// All that a checkpoint holds of one rank, and that goes back there. What it names must outlive it.
struct RunState {
  const FlatParameters* parameters = nullptr;
  std::vector<Slice> slices{};     // that the optimizer was attached to
  Optimizer* optimizer = nullptr;  // after attach()
  NamedTensors buffers{};          // saved and restored with the weights
  std::vector<CheckpointPart> parts{};
};

/// Who writes what.
struct WritePlan {
  int rank = 0, ranks = 1;
  Division weights;  // whole parameters
  Division state;    // parts of parameters: what optimizers remember of them
};

/// Agrees on it. Collective. Throws Error where the slices of all ranks are not all parameters, each once or as often
/// as there are replicas.
WritePlan make_plan(const RunState& state, Communicator& world);

/// Numbers of the parameters by name, in the order of the buckets.
std::vector<Segment> whole_parameters(const FlatParameters& parameters);

/// "weights-00001-of-00002.safetensors".
std::string weights_file(int rank, int ranks);
std::string state_file(int rank, int ranks);

}  // namespace phalanx

#pragma once

#include <vector>

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/checkpoint/division.h"
#include "engine/optim/optimizer.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/flat_parameters.h"
#include "framework/parallel/placement.h"

namespace phalanx {

/// All that a checkpoint holds of one rank, and that goes back there. What it names must outlive it.
struct RunState {
  const FlatParameters* parameters = nullptr;
  std::vector<Slice> slices{};     // that the optimizer was attached to
  Optimizer* optimizer = nullptr;  // after attach()
  NamedTensors buffers{};          // saved and restored with the weights
  std::vector<CheckpointPart> parts{};

  // Of ranks that have a part of the model each.
  Placements placements{};     // of the parameters of which this one has a part
  CommunicatorPtr replicas{};  // the ranks that have the same parameters; null: all ranks of the world do
  bool first_part = true;      // whether this rank writes what those of all parts have
};

/// Who writes what.
struct WritePlan {
  int rank = 0, ranks = 1;  // of the world
  int replica = 0;          // this rank among those that have the same parameters, which divide them:
  Division weights;         // whole parameters
  Division state;           // parts of parameters: what optimizers remember of them
};

/// Agrees on it. Collective. Throws Error where the slices of the ranks that have the same parameters are not all of
/// these, each once or as often as there are replicas.
WritePlan make_plan(const RunState& state, Communicator& world);

/// Numbers of the parameters by name, in the order of the buckets.
std::vector<Segment> whole_parameters(const FlatParameters& parameters);

/// "weights-00001-of-00002.safetensors".
std::string weights_file(int rank, int ranks);
std::string state_file(int rank, int ranks);

}  // namespace phalanx

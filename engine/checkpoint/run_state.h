// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/optim/optimizer.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/flat_parameters.h"
#include "framework/parallel/placement.h"

namespace phalanx {

/// Elements [offset, offset + count) of parameter number `parameter`, in the order in which they lie in memory.
struct ParameterRange {
  std::int64_t parameter = 0;
  std::int64_t offset = 0;
  std::int64_t count = 0;

  auto operator<=>(const ParameterRange&) const = default;
};

/// The rank that writes each range into a checkpoint.
using Division = std::map<ParameterRange, int>;

/// Gives every range to one of the ranks that hold it (`held[r]`: the ranges of rank r), the largest ranges first, each
/// to the one with the fewest elements so far: replicated state is shared out evenly, sharded state stays where it is.
/// A pure function, so that ranks agree without asking.
///
/// `sizes`: elements of each parameter. Throws Error unless the ranges of each parameter are all of it, once.
Division divide(const std::vector<std::vector<ParameterRange>>& held, const std::vector<std::int64_t>& sizes);

/// All that a checkpoint holds of one rank, and that goes back there. What it names must outlive it.
struct RunState {
  const FlatParameters* parameters = nullptr;
  std::vector<Slice> slices{};     // that the optimizer was attached to
  Optimizer* optimizer = nullptr;  // after attach()
  NamedTensors buffers{};          // saved and restored with the weights
  NamedTensors frozen{};           // parameters that are not trained, the same
  std::vector<CheckpointPart> parts{};

  // Of ranks that have a part of the model each.
  Placements placements{};            // of the parameters of which this one has a part
  std::set<std::string> elsewhere{};  // parameters and buffers that only other ranks have
  bool owns_buffers = true;           // writes its buffers; of the ranks that have the same ones, the first
  bool owns_frozen = true;            // writes its whole frozen parameters; of the replicas, the first
  bool owns_frozen_parts = true;      // writes the frozen parameters of which it has a part; the first with this part
  int part = 0;                       // which part of the model this is: ranks with the same one share the update of it

  // Values are in the slices alone; buckets have none.
  bool values_in_slices = false;
};

/// Who writes what.
struct WritePlan {
  int rank = 0, ranks = 1;
  std::map<std::string, std::int64_t> numbers{};  // of this rank's parameters; the same on all ranks that have them
  Division weights;                               // what each rank has of a parameter's values
  Division state;                                 // parts of that: what optimizers remember of them
};

/// Where this rank's part of a parameter is; null: it has all of it.
const Placement* placement_of(const RunState& state, const std::string& parameter);

/// The same of what an optimizer remembers of one parameter by itself: as the parameter, if it is a number for each of
/// its elements.
const Placement* placement_of(const RunState& state, const StateTensor& of_parameter);

/// What this rank has of a parameter, as checkpoints name it: the parameter, with its placement behind it.
std::string stored_name(const RunState& state, const std::string& parameter);

/// The same of what an optimizer remembers of one parameter by itself.
std::string stored_name(const RunState& state, const StateTensor& of_parameter);

/// The same of what a slice has of it: "[A:B]" behind that says which elements. Of values, which are read by their
/// shape, this is behind a placement in any case: that of the whole parameter, where it has no other.
std::string stored_name(const RunState& state, const Segment& segment, bool with_shape);

/// Agrees on it. What several parts of the model have alike, the ranks of the first of them write. Collective. Throws
/// Error where the slices of all ranks are not all parameters, each once or as often as there are replicas.
WritePlan make_plan(const RunState& state, Communicator& world);

/// Numbers of the parameters by name, in the order of the buckets.
std::vector<Segment> whole_parameters(const FlatParameters& parameters);

/// "weights-00001-of-00002.safetensors".
std::string weights_file(int rank, int ranks);
std::string state_file(int rank, int ranks);

}  // namespace phalanx

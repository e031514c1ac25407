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
#include "framework/partition/flat_parameters.h"
#include "framework/partition/placement.h"

namespace phalanx {

/// Elements [offset, offset + count) of the parameter with index `parameter`, in the order of memory.
struct ParameterRange {
  std::int64_t parameter = 0;
  std::int64_t offset = 0;
  std::int64_t count = 0;

  auto operator<=>(const ParameterRange&) const = default;
};

/// The rank that writes each range into a checkpoint.
using RangeWriters = std::map<ParameterRange, int>;

/// Assigns every range to one of the ranks that hold it (`held[r]`: the ranges of rank r). The largest ranges are
/// assigned first, each to the rank with the fewest elements so far: replicated state is divided evenly, and sharded
/// state stays where it is. This is a pure function, so ranks agree without communication.
///
/// `sizes` has the number of elements of each parameter. Throws Error unless the ranges of each parameter cover it
/// exactly once.
RangeWriters assign_writers(const std::vector<std::vector<ParameterRange>>& held,
                            const std::vector<std::int64_t>& sizes);

/// Everything in a checkpoint that belongs to one rank and is restored there. The referenced objects must outlive it.
struct RunState {
  const FlatParameters* parameters = nullptr;
  std::vector<Slice> slices{};     // the optimizer's slices
  Optimizer* optimizer = nullptr;  // after attach()
  NamedTensors buffers{};          // saved and restored with the weights
  NamedTensors frozen{};           // parameters that are not trained, saved and restored in the same way
  std::vector<CheckpointPart> parts{};

  // For ranks that each have a part of the model.
  Placements placements{};            // of the parameters of which this rank has a part
  std::set<std::string> elsewhere{};  // parameters and buffers that only other ranks have
  bool owns_buffers = true;           // true on the first of the ranks with the same buffers, which writes them
  bool owns_frozen = true;            // true on the first replica, which writes whole frozen parameters
  bool owns_frozen_parts = true;  // true on the first rank with this part, which writes its parts of frozen parameters
  int part = 0;                   // index of the part of the model; ranks with the same one divide its update

  // If true, only slices have values, and buckets have none.
  bool values_in_slices = false;
};

/// The assignment of data to the ranks that write it.
struct WritePlan {
  int rank = 0, ranks = 1;
  std::map<std::string, std::int64_t>
      numbers{};         // indices of this rank's parameters; the same on all ranks that have them
  RangeWriters weights;  // ranges of parameters' values
  RangeWriters state;    // smaller ranges, of optimizer state
};

/// Returns the placement of this rank's part of a parameter, or null if the rank has all of it.
const Placement* placement_of(const RunState& state, const std::string& parameter);

/// Returns the placement of state that an optimizer keeps for a single parameter: the parameter's placement, if the
/// state has a number for each of its elements.
const Placement* placement_of(const RunState& state, const StateTensor& of_parameter);

/// Returns the name in checkpoints of this rank's part of a parameter: the parameter, followed by its placement.
std::string stored_name(const RunState& state, const std::string& parameter);

/// Returns the same for state that an optimizer keeps for a single parameter.
std::string stored_name(const RunState& state, const StateTensor& of_parameter);

/// Returns the same for the elements in a slice, followed by "[A:B]" unless the slice has all of them. With
/// `with_shape`, a placement precedes "[A:B]" in any case, for values, which are read by their shape. It is the
/// placement of the whole parameter if this rank has no other.
std::string stored_name(const RunState& state, const Segment& segment, bool with_shape);

/// Computes the plan, the same on all ranks. If several parts of the model have the same parameters, the ranks of the
/// first part write them. Collective. Throws Error unless the slices of all ranks cover each parameter once, or as
/// often as there are replicas.
WritePlan make_plan(const RunState& state, Communicator& world);

/// Returns whole parameters, in the order of the buckets.
std::vector<Segment> whole_parameters(const FlatParameters& parameters);

/// "weights-00001-of-00002.safetensors".
std::string weights_file(int rank, int ranks);
std::string state_file(int rank, int ranks);

}  // namespace phalanx

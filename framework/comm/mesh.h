// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "framework/comm/communicator.h"

namespace phalanx {

/// The dimensions along which training is parallel. Ranks that differ along one of them alone have
///
///              samples                      parameters
///   data       others                       the same
///   pipe       the same                     other layers
///   tensor     the same                     other parts of the same layers
///   expert     others                       the same, but other experts
///   context    other positions of the same  the same
///
/// Rank = position in row-major order, so ranks that differ only along the last one are neighbours.
enum class Axis { kData, kPipe, kTensor, kExpert, kContext };
inline constexpr int kAxes = 5;

std::string_view to_string(Axis axis);

/// Some of the axes: {Axis::kData, Axis::kExpert}.
class AxisSet {
 public:
  constexpr AxisSet(std::initializer_list<Axis> axes) {
    for (const auto axis : axes) bits_ |= 1U << static_cast<int>(axis);
  }
  static constexpr AxisSet all() { return {Axis::kData, Axis::kPipe, Axis::kTensor, Axis::kExpert, Axis::kContext}; }

  constexpr bool has(Axis axis) const { return (bits_ >> static_cast<int>(axis) & 1U) != 0; }

 private:
  unsigned bits_ = 0;
};

/// Ranks along each axis; the product is the size of the world.
struct MeshShape {
  std::array<std::int64_t, kAxes> sizes{1, 1, 1, 1, 1};

  std::int64_t& operator[](Axis axis) { return sizes[static_cast<int>(axis)]; }
  std::int64_t operator[](Axis axis) const { return sizes[static_cast<int>(axis)]; }
  std::int64_t product() const;
};

/// Which ranks do what together. Whoever lets ranks agree on something asks for the ranks that it concerns:
///
///   kSampleAxes   that have samples of their own: how a batch is shared out
///   kBatchAxes    that have a part of the global batch: its loss and meters, statistics of batch norm, running
///                 statistics, random numbers (dropout); every part is with one rank of these
///   kResultAxes   that have the results of the global batch: those of kBatchAxes, of which the stages of a pipeline
///                 have them together
///   kReplicaAxes  that have the same parameters: gradients and whatever a strategy exchanges, initial values, digests.
///                 Of the parameters of experts these are {Axis::kData, Axis::kContext} alone.
///   kModelAxes    that have the parts of one replica: the norm of all gradients, after sums over each part
///
/// On all ranks: whether gradients are finite, votes, checkpoints, where the ranks are, their times.
inline constexpr AxisSet kSampleAxes{Axis::kData, Axis::kExpert};
inline constexpr AxisSet kBatchAxes{Axis::kData, Axis::kExpert, Axis::kContext};
inline constexpr AxisSet kResultAxes{Axis::kData, Axis::kPipe, Axis::kExpert, Axis::kContext};
inline constexpr AxisSet kReplicaAxes{Axis::kData, Axis::kExpert, Axis::kContext};
inline constexpr AxisSet kModelAxes{Axis::kPipe, Axis::kTensor};

/// A world seen as a grid, with the groups of ranks that differ along some axes alone.
///
/// Of each group there are two communicators: one that moves what is computed with (group(): parameters, gradients,
/// statistics), where that lies, and one for what ranks tell each other beside it (control(): votes, meters, checks,
/// texts), in the CPU's memory. They are the same where computing is on the CPU.
///
/// A value: copies share the communicators. The groups of each axis and of the sets above are there from the beginning;
/// others are made when they are asked for first, which is collective: all ranks of the world ask for the same ones in
/// the same order, from one thread each. Axes of size 1 make no difference, and a group of all ranks is the world
/// itself.
class Mesh {
 public:
  /// Collective. `control` has the ranks of `world`, in the same order; null: it is the world. Throws
  /// std::invalid_argument unless the shape's product is the world's size.
  Mesh(CommunicatorPtr world, const MeshShape& shape, CommunicatorPtr control = nullptr);

  /// All ranks along the data axis. Collective.
  explicit Mesh(const CommunicatorPtr& world);

  const MeshShape& shape() const;

  /// Where this rank is along an axis, from 0.
  std::int64_t position(Axis axis) const;

  /// The ranks that differ from this one along `axes` alone, in the order of the world.
  const CommunicatorPtr& group(AxisSet axes) const;
  const CommunicatorPtr& control(AxisSet axes = AxisSet::all()) const;

  const CommunicatorPtr& world() const { return group(AxisSet::all()); }
  const CommunicatorPtr& along(Axis axis) const { return group({axis}); }
  const CommunicatorPtr& data() const { return along(Axis::kData); }
  const CommunicatorPtr& samples() const { return group(kSampleAxes); }
  const CommunicatorPtr& batch() const { return group(kBatchAxes); }
  const CommunicatorPtr& replicas() const { return group(kReplicaAxes); }
  const CommunicatorPtr& model() const { return group(kModelAxes); }

 private:
  class Plane;

  std::shared_ptr<Plane> data_, control_;  // may be one
};

}  // namespace phalanx

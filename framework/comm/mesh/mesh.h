// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "framework/comm/communicator.h"

namespace phalanx {

/// The dimensions of parallel training. Ranks that differ along only one of them compare as follows:
///
///              samples                      parameters
///   data       different                    the same
///   pipe       the same                     different layers
///   tensor     the same                     different parts of the same layers
///   expert     different                    the same, but different experts
///   context    the same, other positions    the same
///
/// Ranks are numbered in row-major order, so ranks that differ only along the last axis are neighbours.
enum class Axis { kData, kPipe, kTensor, kExpert, kContext };
inline constexpr int kAxes = 5;

std::string_view to_string(Axis axis);

/// A set of axes: {Axis::kData, Axis::kExpert}.
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

/// The number of ranks along each axis. The product is the size of the world.
struct MeshShape {
  std::array<std::int64_t, kAxes> sizes{1, 1, 1, 1, 1};

  std::int64_t& operator[](Axis axis) { return sizes[static_cast<int>(axis)]; }
  std::int64_t operator[](Axis axis) const { return sizes[static_cast<int>(axis)]; }
  std::int64_t product() const;
};

/// The sets of axes along which ranks do something together. Code that needs ranks to agree uses the set that fits:
///
///   kSampleAxes   Ranks with different samples: they divide a batch.
///   kBatchAxes    Ranks with different parts of the global batch, one rank for each part: for its loss and meters, the
///                 statistics of batch norm, running statistics, and random numbers (dropout).
///   kResultAxes   Ranks that have the results of the global batch: the ranks along kBatchAxes, and the stages of a
///                 pipeline, which have the results together.
///   kReplicaAxes  Ranks with the same parameters: for gradients and everything else that a strategy exchanges, initial
///                 values, and digests. For the parameters of experts this is only {Axis::kData, Axis::kContext}.
///   kModelAxes    Ranks with the parts of one replica: for the norm of all gradients, after sums over each part.
///
/// All ranks take part in checks for finite gradients, votes, checkpoints, and the exchange of places and times.
inline constexpr AxisSet kSampleAxes{Axis::kData, Axis::kExpert};
inline constexpr AxisSet kBatchAxes{Axis::kData, Axis::kExpert, Axis::kContext};
inline constexpr AxisSet kResultAxes{Axis::kData, Axis::kPipe, Axis::kExpert, Axis::kContext};
inline constexpr AxisSet kReplicaAxes{Axis::kData, Axis::kExpert, Axis::kContext};
inline constexpr AxisSet kModelAxes{Axis::kPipe, Axis::kTensor};

/// A world seen as a grid, with the groups of ranks that differ along some axes only.
///
/// Each group has two communicators. group() moves the data of the computation (parameters, gradients, statistics) in
/// the memory where that data is. control() moves everything else that ranks tell each other (votes, meters, checks,
/// texts) in the CPU's memory. On the CPU they are the same communicator.
///
/// A value type: copies share the communicators. The groups of each axis and of the sets above exist from the
/// beginning. Others are made on first use, which is collective: all ranks of the world must ask for the same ones in
/// the same order, from one thread each. Axes of size 1 make no difference, and a group of all ranks is the world
/// itself.
class Mesh {
 public:
  /// Collective. `control` has the ranks of `world`, in the same order; null means the world itself. Throws
  /// std::invalid_argument unless the product of the shape is the size of the world.
  Mesh(CommunicatorPtr world, const MeshShape& shape, CommunicatorPtr control = nullptr);

  /// Puts all ranks along the data axis. Collective.
  explicit Mesh(const CommunicatorPtr& world);

  const MeshShape& shape() const;

  /// Returns the position of this rank along an axis, from 0.
  std::int64_t position(Axis axis) const;

  /// Returns the group of the ranks that differ from this one only along `axes`, in the order of the world.
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

  std::shared_ptr<Plane> data_, control_;  // may be the same
};

}  // namespace phalanx

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "framework/comm/communicator.h"

namespace phalanx {

/// The dimensions along which training is parallel. Rank = position in row-major order, so ranks that differ only in
/// the last dimension are neighbours.
enum class Axis { kData, kPipe, kTensor, kExpert, kContext };
inline constexpr int kAxes = 5;

std::string_view to_string(Axis axis);

/// Ranks along each axis; the product is the size of the world.
struct MeshShape {
  std::array<std::int64_t, kAxes> sizes{1, 1, 1, 1, 1};

  std::int64_t& operator[](Axis axis) { return sizes[static_cast<int>(axis)]; }
  std::int64_t operator[](Axis axis) const { return sizes[static_cast<int>(axis)]; }
  std::int64_t product() const;
};

/// A world seen as a grid: for each axis the communicator of the ranks that differ from this one along it alone.
/// A value: copies share the communicators.
class Mesh {
 public:
  /// Collective. Throws std::invalid_argument unless the shape's product is the world's size.
  Mesh(CommunicatorPtr world, const MeshShape& shape);

  const CommunicatorPtr& world() const { return world_; }
  const CommunicatorPtr& along(Axis axis) const { return groups_[static_cast<int>(axis)]; }
  const CommunicatorPtr& data() const { return along(Axis::kData); }
  const MeshShape& shape() const { return shape_; }

 private:
  CommunicatorPtr world_;
  MeshShape shape_;
  std::array<CommunicatorPtr, kAxes> groups_;
};

}  // namespace phalanx

#include "framework/comm/mesh.h"

#include <stdexcept>
#include <string>

namespace phalanx {

std::string_view to_string(Axis axis) {
  constexpr std::array<std::string_view, kAxes> names{"data", "pipe", "tensor", "expert", "context"};
  return names[static_cast<int>(axis)];
}

std::int64_t MeshShape::product() const {
  std::int64_t product = 1;
  for (auto size : sizes) product *= size;
  return product;
}

Mesh::Mesh(CommunicatorPtr world, const MeshShape& shape) : world_(std::move(world)), shape_(shape) {
  for (auto size : shape.sizes) {
    if (size < 1) throw std::invalid_argument("every axis of a mesh has at least one rank");
  }
  if (shape.product() != world_->size()) {
    throw std::invalid_argument("a mesh of " + std::to_string(shape.product()) + " ranks does not cover a world of " +
                                std::to_string(world_->size()));
  }
  std::int64_t stride = world_->size();
  for (int axis = 0; axis < kAxes; ++axis) {
    const std::int64_t block = stride;  // ranks from one step of the axis above to its next
    stride /= shape.sizes[axis];
    const std::int64_t rank = world_->rank();
    if (shape.sizes[axis] == world_->size()) {
      groups_[axis] = world_;
    } else {
      const std::int64_t color = rank / block * stride + rank % stride;
      groups_[axis] = world_->split(static_cast<int>(color), world_->rank());
    }
  }
}

}  // namespace phalanx

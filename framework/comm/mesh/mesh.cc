// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/mesh/mesh.h"

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/mesh/fake_communicator.h"

namespace phalanx {
namespace {

constexpr std::array<Axis, kAxes> kAllAxes{Axis::kData, Axis::kPipe, Axis::kTensor, Axis::kExpert, Axis::kContext};

MeshShape data_parallel(int ranks) {
  MeshShape shape;
  shape[Axis::kData] = ranks;
  return shape;
}

}  // namespace

std::string_view to_string(Axis axis) {
  constexpr std::array<std::string_view, kAxes> names{"data", "pipe", "tensor", "expert", "context"};
  return names[static_cast<int>(axis)];
}

std::int64_t MeshShape::product() const {
  std::int64_t product = 1;
  for (auto size : sizes) product *= size;
  return product;
}

/// A world with the groups that have been made from it so far.
class Mesh::Plane {
 public:
  Plane(CommunicatorPtr world, const MeshShape& shape) : world_(std::move(world)), shape_(shape) {
    std::int64_t stride = world_->size();
    for (const auto axis : kAllAxes) {
      stride /= shape_[axis];
      positions_[static_cast<int>(axis)] = world_->rank() / stride % shape_[axis];
    }
  }

  const MeshShape& shape() const { return shape_; }
  std::int64_t position(Axis axis) const { return positions_[static_cast<int>(axis)]; }

  const CommunicatorPtr& group(AxisSet axes) {
    std::array<bool, kAxes> inside{};
    std::int64_t size = 1, color = 0;  // ranks at the same positions along the other axes have the same color
    for (const auto axis : kAllAxes) {
      if (shape_[axis] == 1) continue;
      inside[static_cast<int>(axis)] = axes.has(axis);
      if (axes.has(axis)) {
        size *= shape_[axis];
      } else {
        color = color * shape_[axis] + position(axis);
      }
    }
    if (size == world_->size()) return world_;
    auto& group = groups_[inside];
    if (!group) group = make(static_cast<int>(color), inside);
    return group;
  }

 private:
  CommunicatorPtr make(int color, const std::array<bool, kAxes>& inside) {
    auto* const fake = dynamic_cast<FakeCommunicator*>(world_.get());
    return fake == nullptr ? world_->split(color, world_->rank()) : fake->group_of(ranks_along(inside));
  }

  // Returns the ranks at the same positions as this one along the axes that are not `inside`.
  std::vector<int> ranks_along(const std::array<bool, kAxes>& inside) const {
    std::vector<int> ranks;
    for (int rank = 0; rank < world_->size(); ++rank) {
      bool alike = true;
      std::int64_t stride = world_->size();
      for (std::size_t axis = 0; axis < kAxes; ++axis) {
        stride /= shape_.sizes[axis];
        alike &= inside[axis] || rank / stride % shape_.sizes[axis] == positions_[axis];
      }
      if (alike) ranks.push_back(rank);
    }
    return ranks;
  }

  CommunicatorPtr world_;
  MeshShape shape_;
  std::array<std::int64_t, kAxes> positions_{};
  std::map<std::array<bool, kAxes>, CommunicatorPtr> groups_;  // by axes of size above 1
};

Mesh::Mesh(CommunicatorPtr world, const MeshShape& shape, CommunicatorPtr control) {
  for (auto size : shape.sizes) {
    if (size < 1) throw std::invalid_argument("every axis of a mesh has at least one rank");
  }
  if (shape.product() != world->size()) {
    throw std::invalid_argument("a mesh of " + std::to_string(shape.product()) + " ranks does not cover a world of " +
                                std::to_string(world->size()));
  }
  const bool same = control == nullptr || control == world;
  data_ = std::make_shared<Plane>(std::move(world), shape);
  control_ = same ? data_ : std::make_shared<Plane>(std::move(control), shape);
  for (auto* plane : {data_.get(), control_.get()}) {
    for (const auto axis : kAllAxes) plane->group({axis});
    for (const auto axes : {kSampleAxes, kBatchAxes, kResultAxes, kReplicaAxes, kModelAxes}) plane->group(axes);
  }
}

Mesh::Mesh(const CommunicatorPtr& world) : Mesh(world, data_parallel(world->size())) {}

const MeshShape& Mesh::shape() const { return data_->shape(); }

std::int64_t Mesh::position(Axis axis) const { return data_->position(axis); }

const CommunicatorPtr& Mesh::group(AxisSet axes) const { return data_->group(axes); }

const CommunicatorPtr& Mesh::control(AxisSet axes) const { return control_->group(axes); }

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#include "engine/config/mesh_config.h"

#include <algorithm>

#include "framework/base/error.h"

namespace phalanx {
namespace {

// Returns the mesh of `ranks` ranks that is closest to the requested one.
std::string nearest_mesh(const MeshConfig& mesh, std::int64_t ranks) {
  std::string text;
  for (const auto& [name, wanted] : model_parallel_axes(mesh)) {
    auto size = std::min(wanted, ranks);
    while (ranks % size != 0) --size;
    ranks /= size;
    text += ", " + name + ": " + std::to_string(size);
  }
  return "data: " + std::to_string(ranks) + text;
}

MeshShape shape_of(const MeshConfig& mesh, std::int64_t ranks) {
  MeshShape shape;
  shape[Axis::kPipe] = mesh.pipe;
  shape[Axis::kTensor] = mesh.tensor;
  shape[Axis::kExpert] = mesh.expert;
  shape[Axis::kContext] = mesh.context;
  shape[Axis::kData] = mesh.data > 0 ? mesh.data : std::max<std::int64_t>(1, ranks / shape.product());
  return shape;
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> model_parallel_axes(const MeshConfig& mesh) {
  std::vector<std::pair<std::string, std::int64_t>> axes{
      {"pipe", mesh.pipe}, {"tensor", mesh.tensor}, {"expert", mesh.expert}, {"context", mesh.context}};
  std::erase_if(axes, [](const auto& axis) { return axis.second == 1; });
  return axes;
}

std::string mesh_problem(const MeshConfig& mesh, std::int64_t ranks) {
  const auto shape = shape_of(mesh, ranks);
  if (shape.product() == ranks) return "";
  const std::string there = std::to_string(ranks) + (ranks == 1 ? " rank trains" : " ranks train");
  std::string axes = "data: " + std::to_string(shape[Axis::kData]);
  const auto divided = model_parallel_axes(mesh);
  if (divided.empty()) return axes + ", but " + there + "; 0 uses all";
  for (const auto& [name, size] : divided) axes += " times " + name + ": " + std::to_string(size);
  return axes + " is " + std::to_string(shape.product()) + ", but " + there + "; {" + nearest_mesh(mesh, ranks) +
         "} fits";
}

MeshShape mesh_shape(const MeshConfig& mesh, std::int64_t ranks) {
  const auto problem = mesh_problem(mesh, ranks);
  if (!problem.empty()) throw ConfigError("mesh: " + problem);
  return shape_of(mesh, ranks);
}

}  // namespace phalanx

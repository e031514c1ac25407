// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/config/visitor.h"
#include "framework/comm/mesh/mesh.h"

namespace phalanx {

/// Section `mesh` of a config: the arrangement of the ranks that train on parallel axes.
struct MeshConfig {
  std::int64_t data = 0;
  std::int64_t pipe = 1;
  std::int64_t tensor = 1;
  std::int64_t expert = 1;
  std::int64_t context = 1;
  bool sequence_parallel = false;
  bool async_tensor = false;

  template <class V>
  void visit(V& v) {
    v("data", data, "ranks that each have samples of their own; 0: as many as the other axes leave",
      config::at_least(0));
    v("pipe", pipe, "ranks that each have some of the layers of a replica, and pass micro-batches on",
      config::at_least(1));
    v("tensor", tensor, "ranks that divide the layers of each replica among them", config::at_least(1));
    v("expert", expert, "ranks that have samples of their own and divide the experts", config::at_least(1));
    v("context", context, "ranks that have the same samples and divide the positions of their sequences",
      config::at_least(1));
    v("sequence_parallel", sequence_parallel,
      "the ranks of `tensor` divide the positions of what lies between the layers that they divide");
    v("async_tensor", async_tensor, "with sequence_parallel: exchange positions while products are computed");
  }
};

/// An element of section `plan` of a config: the division of some layers along the tensor axis.
struct PlanConfig {
  std::string layers;
  std::string style;

  template <class V>
  void visit(V& v) {
    v("layers", layers, "names of layers, where * is any part of a name");
    v("style", style, "how they are divided", config::one_of({"column", "column_gathered", "row", "vocabulary"}));
  }
};

/// Returns the axes of more than one rank along which a replica, its experts or its sequences are partitioned, with
/// their sizes, such as {"pipe", 2}. The outermost axis is first.
std::vector<std::pair<std::string, std::int64_t>> model_parallel_axes(const MeshConfig& mesh);

/// Returns why `ranks` ranks do not fit the mesh; empty: they do.
std::string mesh_problem(const MeshConfig& mesh, std::int64_t ranks);

/// Returns the mesh of the `ranks` ranks that train. Throws ConfigError if its size is not `ranks`.
MeshShape mesh_shape(const MeshConfig& mesh, std::int64_t ranks);

}  // namespace phalanx

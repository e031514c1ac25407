// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// Which part of a parameter a rank of model parallelism has: some runs of indices along one dimension, one behind the
/// other, and all of the others. Of a fused projection to queries, keys and values [3 width, width], for instance, rank
/// r of P has three runs of width / P rows each.
///
/// Checkpoints hold such a part under the parameter's name with to_text() behind it, so that any other division can be
/// read from them.
struct Placement {
  struct Run {
    std::int64_t begin = 0, count = 0;
    bool operator==(const Run&) const = default;
  };

  std::vector<std::int64_t> shape{};  // of the whole parameter
  std::int64_t dim = 0;
  std::vector<Run> runs{};  // ascending, without overlap

  std::vector<std::int64_t> part_shape() const;

  /// A contiguous copy of this part of `whole`.
  at::Tensor take(const at::Tensor& whole) const;

  /// Writes this part of `whole`.
  void put(const at::Tensor& whole, const at::Tensor& part) const;

  bool operator==(const Placement&) const = default;
};

/// "@1:0+32,128+32/384x128": dimension, runs as begin+count, shape of the whole.
std::string to_text(const Placement& placement);

/// Cuts such a text off the end of a name. Returns false, and changes nothing, if there is none or if no parameter has
/// such a part, because runs lie outside of the dimension or the shape has more elements than an int64 can count.
bool take_placement(std::string& name, Placement& placement);

/// The parameters of which this rank has a part; all others are whole on each rank.
using Placements = std::map<std::string, Placement>;

/// One of `ranks` nearly equal parts of `size` indices.
Placement::Run nearly_equal_part(std::int64_t size, int rank, int ranks);

}  // namespace phalanx

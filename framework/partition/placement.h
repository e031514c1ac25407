// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// The part of a parameter that a rank of model parallelism has: some ranges of indices along one dimension, one after
/// the other, and all indices of the other dimensions. For example, if P ranks divide a fused projection to queries,
/// keys and values [3 width, width], each rank has three ranges of width / P rows.
///
/// Checkpoints store such a part under the parameter's name followed by to_text(), so that a run with any other
/// division can read them.
struct Placement {
  struct Range {
    std::int64_t begin = 0, count = 0;
    bool operator==(const Range&) const = default;
  };

  std::vector<std::int64_t> shape{};  // of the whole parameter
  std::int64_t dim = 0;
  std::vector<Range> ranges{};  // ascending, without overlap

  std::vector<std::int64_t> part_shape() const;

  /// Returns a contiguous copy of this part of `whole`.
  at::Tensor take(const at::Tensor& whole) const;

  /// Writes `part` to this part of `whole`.
  void put(const at::Tensor& whole, const at::Tensor& part) const;

  bool operator==(const Placement&) const = default;
};

/// Returns "@1:0+32,128+32/384x128": dimension, ranges as begin+count, shape of the whole.
std::string to_text(const Placement& placement);

/// Removes such a text from the end of a name. Returns false, and changes nothing, if there is no such text. The same
/// holds if no parameter can have such a part, because ranges lie outside the dimension or the shape has more elements
/// than an int64 can count.
bool take_placement(std::string& name, Placement& placement);

/// The parameters of which this rank has only a part; all other parameters are whole on each rank.
using Placements = std::map<std::string, Placement>;

/// Returns part `rank` of `ranks` nearly equal parts of `size` indices.
Placement::Range nearly_equal_part(std::int64_t size, int rank, int ranks);

}  // namespace phalanx

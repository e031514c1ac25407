// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/base/named_tensors.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The place of a parameter, or of a part of one, in a run of elements.
struct Segment {
  std::string name;
  std::vector<std::int64_t> shape;  // of the whole parameter
  std::int64_t begin = 0;           // offset in the run
  std::int64_t count = 0;           // number of elements here
  std::int64_t offset = 0;          // offset of the first element here in the parameter
  // Strides of a parameter that does not lie row by row, such as channels_last. Such a parameter is never divided.
  std::vector<std::int64_t> strides{};

  std::int64_t end() const { return begin + count; }
  bool whole() const;  // all of the parameter is here
};

/// Returns the parameter of a segment, or the part of one, as a view of the run that contains it. A whole parameter has
/// its shape, and a part has the shape [count].
at::Tensor view_of(const at::Tensor& run, const Segment& segment);

/// Returns the segments of elements [begin, begin + count) of a run, with offsets relative to `begin`.
std::vector<Segment> cut(const std::vector<Segment>& segments, std::int64_t begin, std::int64_t count);

/// A run of parameters, in the order in which backward produces their gradients (the last layer first). Each parameter
/// begins at a cache line, so that vectors are read and written without touching two lines; otherwise, adding a product
/// to a gradient would take longer. Elements between parameters are padding, which begins as zeros.
struct Bucket {
  at::Tensor values;                   // [n], every parameter is a view of it
  at::Tensor gradients;                // [n], every parameter's grad is a view of it; zeroed by the optimizer
  std::vector<at::Tensor> parameters;  // in the order of their place in `values`
  std::vector<Segment> segments;       // segments of the parameters, in the same order
};

/// A model's parameters moved into a few buckets. Communication, optimizer, sharding and checkpoints all work on these
/// few long tensors, and the training loop copies nothing.
class FlatParameters {
 public:
  /// Moves `parameters` into buckets allocated by `memory`. Parameters are leaves of one dtype on the CPU and keep
  /// their strides. A bucket is closed as soon as it holds `bucket_bytes`, and if the next parameter is of another
  /// group. Padding at its end makes its length a multiple of `parts` kPartUnit, so that it can be divided into equal
  /// parts. Collective. Throws std::invalid_argument for a mixture of dtypes.
  using GroupOf = std::function<std::size_t(const std::string& name)>;
  FlatParameters(
      const NamedTensors& parameters, Communicator& memory, std::int64_t bucket_bytes, std::int64_t parts = 1,
      const GroupOf& group_of = [](const std::string&) { return std::size_t{0}; });

  /// Borders between the parts of a bucket are multiples of this number of elements, so that vectorised updates of the
  /// parts round like an update of the whole bucket.
  static constexpr std::int64_t kPartUnit = 16;

  /// Does the same for parameters whose names are their positions: "0", "1", ...
  FlatParameters(const std::vector<at::Tensor>& parameters, Communicator& memory, std::int64_t bucket_bytes);

  /// Uses buckets that already exist.
  explicit FlatParameters(std::vector<Bucket> buckets) : buckets_(std::move(buckets)) {}

  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  std::vector<Bucket> buckets_;
};

/// Makes the values and parameters of a bucket views of other memory, which has the same number of elements and the
/// same dtype, and takes over the values in it. Existing views of the old values still refer to the old memory.
void view_values(const Bucket& bucket, const at::Tensor& memory);

}  // namespace phalanx

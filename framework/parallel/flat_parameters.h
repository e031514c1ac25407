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

/// Where a parameter, or a part of one, lies in a run of elements.
struct Segment {
  std::string name;
  std::vector<std::int64_t> shape;  // of the whole parameter
  std::int64_t begin = 0;           // in the run
  std::int64_t count = 0;           // elements here
  std::int64_t offset = 0;          // of the first of them in the parameter
  // How the parameter lies there where that is not row by row, such as channels_last. None of these is cut in parts.
  std::vector<std::int64_t> strides{};

  std::int64_t end() const { return begin + count; }
  bool whole() const;  // all of the parameter is here
};

/// What a segment is of, as a view of the run that it lies in: a whole parameter with its shape, a part of one as
/// [count].
at::Tensor view_of(const at::Tensor& run, const Segment& segment);

/// The segments of elements [begin, begin + count) of a run, as they lie in that part of it.
std::vector<Segment> cut(const std::vector<Segment>& segments, std::int64_t begin, std::int64_t count);

/// A run of parameters, in the order in which backward produces their gradients (the last layer first). Each begins
/// with a cache line, where vectors are read and written without touching two of them: a product that is added to a
/// gradient takes longer elsewhere. What is between them belongs to none: it begins as zeros.
struct Bucket {
  at::Tensor values;                   // [n], every parameter is a view of it
  at::Tensor gradients;                // [n], every parameter's grad is a view of it; zeroed by the optimizer
  std::vector<at::Tensor> parameters;  // in the order in which they lie in `values`
  std::vector<Segment> segments;       // of the same
};

/// A model's parameters moved into a few buckets, so that communication, optimizer, sharding and checkpoints all work
/// on the same few long tensors and nothing is copied in the loop.
class FlatParameters {
 public:
  /// Moves `parameters` (leaves, of one dtype, on the CPU; they keep their strides) into buckets allocated by `memory`;
  /// a bucket is closed as soon as it holds `bucket_bytes`, and where the next parameter is of another group.
  /// Collective. Throws std::invalid_argument for a mixture of dtypes.
  using GroupOf = std::function<std::size_t(const std::string& name)>;
  FlatParameters(
      const NamedTensors& parameters, Communicator& memory, std::int64_t bucket_bytes,
      const GroupOf& group_of = [](const std::string&) { return std::size_t{0}; });

  /// The same of parameters whose names are their places: "0", "1", ...
  FlatParameters(const std::vector<at::Tensor>& parameters, Communicator& memory, std::int64_t bucket_bytes);

  /// Buckets that lie somewhere already.
  explicit FlatParameters(std::vector<Bucket> buckets) : buckets_(std::move(buckets)) {}

  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  std::vector<Bucket> buckets_;
};

/// Makes the values and parameters of a bucket views of other memory, of as many elements and the same dtype, with the
/// values that are there. Views that others made of the old values stay views of those.
void view_values(const Bucket& bucket, const at::Tensor& memory);

}  // namespace phalanx

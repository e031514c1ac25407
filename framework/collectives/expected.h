// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/reduction.h"

/// What collectives should give, computed element by element without any of their code. For tests.
namespace phalanx::testing {

/// A reduction and the dtype it is tried on.
struct Reducing {
  Reduction op;
  c10::ScalarType dtype;
};

/// Every kind of reduction, and every dtype, at least once; the last one is not commutative.
const std::vector<Reducing>& reducings();

/// What `rank` contributes: elements that differ by rank and place, and whose sums and products are exact in `dtype`.
at::Tensor contribution(int rank, std::int64_t elements, c10::ScalarType dtype);

/// The contributions of ranks 0..ranks-1, combined in this order.
at::Tensor reduced(const Reducing& reducing, int ranks, std::int64_t elements);

/// Counts for each of `ranks`: zeros, ones and more, differing by `seed`.
std::vector<std::int64_t> uneven_counts(int ranks, int seed);

/// A run of elements between two others, which show whether somebody wrote past its ends.
class Guarded {
 public:
  Guarded(std::int64_t elements, c10::ScalarType dtype);
  explicit Guarded(const at::Tensor& values);

  const at::Tensor& tensor() const { return tensor_; }
  bool intact() const;

 private:
  at::Tensor whole_;
  at::Tensor tensor_;
};

}  // namespace phalanx::testing

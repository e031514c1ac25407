// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/operations/reduction.h"

/// Expected results of collectives, computed element by element without any code of the collectives. For tests.
namespace phalanx::testing {

/// A reduction and the dtype to test it with.
struct Reducing {
  Reduction op;
  c10::ScalarType dtype;
};

/// Returns cases that cover every kind of reduction and every dtype at least once. The reduction of the last one is not
/// commutative.
const std::vector<Reducing>& reducings();

/// Returns the contribution of `rank`: the elements differ by rank and index, and their sums and products are exact in
/// `dtype`.
at::Tensor contribution(int rank, std::int64_t elements, c10::ScalarType dtype);

/// Returns the contributions of ranks 0..ranks-1, combined in this order.
at::Tensor reduced(const Reducing& reducing, int ranks, std::int64_t elements);

/// Returns a count for each of `ranks` ranks: zeros, ones and larger ones, which depend on `seed`.
std::vector<std::int64_t> uneven_counts(int ranks, int seed);

/// A run of elements between two guard elements. intact() returns false if a guard was overwritten.
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

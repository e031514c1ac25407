// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/accumulate.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/testing/optimizer.h"

namespace phalanx::testing {

/// State of a reference for a parameter, by name; undefined before the first update.
using TwinState = std::map<std::string, at::Tensor>;

/// Expects the optimizer of this YAML to compute, in 100 updates of all parameters, the same values as
/// `update_twin(twin, state, t)`, with t from 1. The tolerance is 1e-6 in float and 1e-10 in double, where rounding
/// cannot hide a mistake.
template <class UpdateTwin>
void expect_follows_paper(const std::string& yaml, const UpdateTwin& update_twin) {
  for (const auto& [dtype, tolerance] : {std::pair{at::kFloat, 1e-6}, std::pair{at::kDouble, 1e-10}}) {
    SCOPED_TRACE(yaml + (dtype == at::kFloat ? " in float" : " in double"));
    Twins twins(yaml, dtype);
    std::map<std::string, TwinState> states;
    for (int t = 1; t <= 100; ++t) {
      twins.update([&] {
        for (auto& twin : twins.reference()) update_twin(twin, states[twin.name], t);
      });
    }
    twins.expect_same(tolerance);
  }
}

/// Returns state[name], initialized with zeros like `values`.
inline at::Tensor& remembered(TwinState& state, const std::string& name, const at::Tensor& values) {
  auto& tensor = state[name];
  if (!tensor.defined()) tensor = values * 0;
  return tensor;
}

/// Returns a parameter "weight" of this shape after 10 updates in double. Element i starts as cos(i / 2) and has the
/// gradients sin(1.3 i + t^2), t from 0. The golden values were computed in the same way.
inline at::Tensor after_ten_updates(const std::string& yaml, const std::vector<std::int64_t>& shape) {
  const auto elements = c10::multiply_integers(shape);
  const at::Tensor places = at::arange(elements, at::kDouble), values = places.div(2).cos_();
  const Slice slice{values, at::zeros_like(values), {{"weight", shape, 0, elements, 0}}};
  const auto optimizer = make_optimizer(yaml);
  optimizer->attach({slice});
  for (int t = 0; t < 10; ++t) {
    slice.gradients.copy_(places.mul(1.3).add_(t * t).sin_());
    optimizer->update();
  }
  return values;
}

/// Expects `values` to be `golden`, with a tolerance relative to 1.
inline void expect_near(const at::Tensor& values, const std::vector<double>& golden, double tolerance) {
  ASSERT_EQ(values.numel(), static_cast<std::int64_t>(golden.size()));
  for (std::size_t i = 0; i < golden.size(); ++i)
    EXPECT_NEAR(values[static_cast<std::int64_t>(i)].item<double>(), golden[i], tolerance) << "element " << i;
}

}  // namespace phalanx::testing

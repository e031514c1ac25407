// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/storage/safetensors.h"
#include "models/model.h"

namespace phalanx::testing {

/// Returns the spec that the task of these samples requires of a model.
ModelSpec model_spec(const SampleSpec& sample);

/// Returns the model of a YAML section such as "{name: mlp, hidden: [3]}" or "mlp", with initial values drawn with
/// `seed`. Throws ConfigError.
std::shared_ptr<Model> make_model(const std::string& section, const SampleSpec& sample, std::uint64_t seed = 1);

/// Returns parameters, then buffers.
NamedTensors state_of(const Model& model);

std::vector<std::string> names_of(const Model& model);

/// Returns lines "conv1.weight [64, 3, 7, 7]", parameters first, as in the golden files.
std::string layout_of(const Model& model);

std::int64_t parameters_of(const Model& model);  // number of elements

/// Sets values that are easy to compute in any language: element i of parameter k (in the model's order) is 0.2 sin(1.7
/// i + k), plus 1 for the weights of norms.
void fill(Model& model);

/// Returns two texts of 6 tokens each, all below 10.
at::Tensor some_text();

/// Returns sin(0.37 i).
at::Tensor waves(at::IntArrayRef sizes);

}  // namespace phalanx::testing

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

/// What the task of these samples wants of a model.
ModelSpec model_spec(const SampleSpec& sample);

/// The model of a YAML section such as "{name: mlp, hidden: [3]}" or "mlp", with the initial values of `seed`. Throws
/// ConfigError.
std::shared_ptr<Model> make_model(const std::string& section, const SampleSpec& sample, std::uint64_t seed = 1);

/// Parameters, then buffers.
NamedTensors state_of(const Model& model);

std::vector<std::string> names_of(const Model& model);

/// Lines "conv1.weight [64, 3, 7, 7]", parameters first, as the golden files have them.
std::string layout_of(const Model& model);

std::int64_t parameters_of(const Model& model);  // elements

/// Values that a few lines in any language can make: element i of parameter k (by name order of the model) is
/// 0.2 sin(1.7 i + k), and 1 more for the weights of norms.
void fill(Model& model);

/// Two texts of 6 tokens each, below 10.
at::Tensor some_text();

/// sin(0.37 i).
at::Tensor waves(at::IntArrayRef sizes);

}  // namespace phalanx::testing

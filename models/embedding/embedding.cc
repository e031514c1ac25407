// SPDX-License-Identifier: Apache-2.0
#include "models/embedding/embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include "framework/base/error.h"

namespace phalanx {

at::Tensor keys_of(const at::Tensor& ids, const EmbeddingSpec& spec) {
  return ids + at::arange(spec.features, ids.options()) * spec.keys;
}

RecommenderInputs recommender_inputs(const std::string& model, const ModelSpec& spec) {
  const bool fits = spec.inputs.size() == 2 && spec.inputs[0].dtype == at::kFloat && spec.inputs[0].shape.size() == 1 &&
                    spec.inputs[1].dtype == at::kLong && spec.inputs[1].shape.size() == 1 &&
                    spec.inputs[1].classes > 0 && spec.outputs.size() == 1 && spec.outputs[0].shape.empty();
  if (!fits) {
    throw ConfigError("model " + model +
                      " needs samples with a row of numbers and a row of ids, and a probability to predict, as in"
                      " the dataset \"clicks\"");
  }
  return {.numbers = spec.inputs[0].shape[0], .features = spec.inputs[1].shape[0], .keys = spec.inputs[1].classes};
}

}  // namespace phalanx

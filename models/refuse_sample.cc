// SPDX-License-Identifier: Apache-2.0
#include "models/refuse_sample.h"

#include <vector>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

std::string shape_of(const TensorSpec& tensor) {
  std::vector<std::string> sizes;
  for (const auto size : tensor.shape) sizes.push_back(std::to_string(size));
  return "[" + join(sizes, ", ") + "]";
}

std::string list(const std::vector<TensorSpec>& tensors) {
  std::vector<std::string> names;
  for (const auto& tensor : tensors) names.push_back(tensor.name + " " + shape_of(tensor));
  return join(names, ", ");
}

}  // namespace

OneToOne one_to_one(const std::string& model, const ModelSpec& spec) {
  if (spec.inputs.size() == 1 && spec.outputs.size() == 1) return {spec.inputs[0], spec.outputs[0]};
  throw ConfigError("model " + model + " has one input and one output, but the task has inputs " + list(spec.inputs) +
                    " and outputs " + list(spec.outputs));
}

std::int64_t classes_of(const std::string& model, const TensorSpec& output) {
  if (output.shape.size() == 1) return output.shape[0];
  throw ConfigError("model " + model + " gives one row of scores for a sample, but the task needs " + output.name +
                    " " + shape_of(output));
}

NextToken next_token(const std::string& model, const ModelSpec& spec) {
  const auto [input, output] = one_to_one(model, spec);
  if (input.shape.size() != 1 || input.dtype != at::kLong) {
    refuse_sample(model, "a sequence of indices, as in the dataset \"text\"", input);
  }
  const NextToken found{.context = input.shape[0], .classes = input.classes};
  if (output.shape == std::vector{found.context, found.classes}) return found;
  throw ConfigError("model " + model + " gives a score for each of " + std::to_string(found.classes) +
                    " tokens at each of " + std::to_string(found.context) +
                    " positions, but the task needs something else");
}

void refuse_uneven_heads(const std::string& model, std::int64_t width, std::int64_t heads) {
  if (width % heads == 0) return;
  throw ConfigError("model " + model + ": width " + std::to_string(width) + " cannot be divided among " +
                    std::to_string(heads) + " heads: use a multiple of the heads");
}

void refuse_sample(const std::string& model, const std::string& needs, const TensorSpec& sample) {
  throw ConfigError("model " + model + " needs " + needs + ", but a sample is " + shape_of(sample) +
                    (sample.dtype == at::kLong ? " indices" : ""));
}

}  // namespace phalanx

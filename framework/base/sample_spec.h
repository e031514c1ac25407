// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// Describes one of the tensors of a sample.
struct TensorSpec {
  std::string name;                   // "image", "tokens", "label"
  std::vector<std::int64_t> shape{};  // of one sample, without the batch dimension: {1, 28, 28}
  at::ScalarType dtype = at::kFloat;
  std::int64_t classes = 0;  // values of an int64 tensor lie in [0, classes); 0: they are not class numbers
  bool ignored = false;      // some of the class numbers may be kIgnored
};

/// Describes the samples of a dataset and the task that they are for.
struct SampleSpec {
  std::vector<TensorSpec> inputs;   // at least one
  std::vector<TensorSpec> targets;  // may be empty: a model may be trained to reproduce its inputs
  std::string task;                 // name of a registered Task that suits the samples
};

/// Describes the inputs that a model takes and the outputs that it must return. A task makes it from a dataset's
/// SampleSpec.
struct ModelSpec {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;  // float32; shapes are of one sample: {classes}, {tokens, classes}
};

/// Returns the spec of samples that are one float32 tensor with one class number.
inline SampleSpec classification_samples(std::vector<std::int64_t> shape, std::int64_t classes) {
  return {.inputs = {{.name = "input", .shape = std::move(shape)}},
          .targets = {{.name = "label", .dtype = at::kLong, .classes = classes}},
          .task = "classification"};
}

/// Returns the spec of samples of `length` tokens, whose target is the token that follows each of them.
inline SampleSpec language_samples(std::int64_t length, std::int64_t classes, bool padded = false) {
  return {.inputs = {{.name = "tokens", .shape = {length}, .dtype = at::kLong, .classes = classes}},
          .targets =
              {{.name = "next_tokens", .shape = {length}, .dtype = at::kLong, .classes = classes, .ignored = padded}},
          .task = "language_modelling"};
}

}  // namespace phalanx

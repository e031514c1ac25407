// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// What one of a sample's tensors looks like.
struct TensorSpec {
  std::string name;                   // "image", "tokens", "label"
  std::vector<std::int64_t> shape{};  // of one sample, without the batch dimension: {1, 28, 28}
  at::ScalarType dtype = at::kFloat;
  std::int64_t classes = 0;  // of int64: values lie in [0, classes); 0: not class numbers
  bool ignored = false;      // some of the class numbers may be kIgnored
};

/// What a dataset's samples look like, and what they are for.
struct SampleSpec {
  std::vector<TensorSpec> inputs;   // at least one
  std::vector<TensorSpec> targets;  // may be empty: a model may be trained to give back what it gets
  std::string task;                 // a registered Task that suits them
};

/// What a model takes and what it is to give: made by a task of a dataset's SampleSpec.
struct ModelSpec {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;  // float32; shapes are of one sample: {classes}, {tokens, classes}
};

/// Samples of one float32 tensor each, one class number to each.
inline SampleSpec classification_samples(std::vector<std::int64_t> shape, std::int64_t classes) {
  return {.inputs = {{.name = "input", .shape = std::move(shape)}},
          .targets = {{.name = "label", .dtype = at::kLong, .classes = classes}},
          .task = "classification"};
}

/// Samples of `length` tokens each, with the one that follows each of them.
inline SampleSpec language_samples(std::int64_t length, std::int64_t classes, bool padded = false) {
  return {.inputs = {{.name = "tokens", .shape = {length}, .dtype = at::kLong, .classes = classes}},
          .targets =
              {{.name = "next_tokens", .shape = {length}, .dtype = at::kLong, .classes = classes, .ignored = padded}},
          .task = "language_modelling"};
}

}  // namespace phalanx

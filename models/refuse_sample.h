// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/sample_spec.h"

namespace phalanx {

/// The one tensor that a model takes, and the one that it gives.
struct OneToOne {
  const TensorSpec& input;
  const TensorSpec& output;
};

/// Throws ConfigError where the task has several of either.
OneToOne one_to_one(const std::string& model, const ModelSpec& spec);

/// The classes that a model is to tell apart, with one score for each. Throws ConfigError for outputs of another shape.
std::int64_t classes_of(const std::string& model, const TensorSpec& output);

/// Inputs and outputs of a language model: [context] tokens of so many classes, and scores of all classes for the token
/// after each. Throws ConfigError if the task has other ones.
struct NextToken {
  std::int64_t context, classes;
};
NextToken next_token(const std::string& model, const ModelSpec& spec);

/// Throws ConfigError unless each of the heads of attention gets as many of the features.
void refuse_uneven_heads(const std::string& model, std::int64_t width, std::int64_t heads);

/// Throws the ConfigError "model NAME needs NEEDS, but a sample is [1, 28, 28]", or "[64] indices", for a dataset whose
/// samples do not fit a model.
[[noreturn]] void refuse_sample(const std::string& model, const std::string& needs, const TensorSpec& sample);

}  // namespace phalanx

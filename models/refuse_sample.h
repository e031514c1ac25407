// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/sample_spec.h"

namespace phalanx {

/// The only input and the only output of a model.
struct OneToOne {
  const TensorSpec& input;
  const TensorSpec& output;
};

/// Throws ConfigError if the task has several inputs or outputs.
OneToOne one_to_one(const std::string& model, const ModelSpec& spec);

/// Returns the number of classes of a classifier with one score per class. Throws ConfigError for outputs of another
/// shape.
std::int64_t classes_of(const std::string& model, const TensorSpec& output);

/// Inputs and outputs of a language model: [context] tokens in [0, classes), and the scores of all classes for the
/// token that follows each. next_token() throws ConfigError if the task has other inputs or outputs.
struct NextToken {
  std::int64_t context, classes;
};
NextToken next_token(const std::string& model, const ModelSpec& spec);

/// Throws ConfigError unless `heads` divides `width`, the number of features.
void refuse_uneven_heads(const std::string& model, std::int64_t width, std::int64_t heads);

/// Throws the ConfigError "model NAME needs NEEDS, but a sample is [1, 28, 28]", or "[64] indices", for a dataset whose
/// samples do not fit a model.
[[noreturn]] void refuse_sample(const std::string& model, const std::string& needs, const TensorSpec& sample);

}  // namespace phalanx

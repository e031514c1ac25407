// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/named_tensors.h"
#include "models/model.h"

namespace phalanx {

/// Freezes the parameters whose names contain a match of the regular expression: from now on, they require no gradient.
/// Must be called before any other use of the parameters. Throws ConfigError, which begins with the config key `key`,
/// if the expression is invalid, matches no parameter, or matches all parameters.
void freeze(Model& model, const std::string& expression, const std::string& key);

/// Throws ConfigError, which begins with the config key `key`, if the expression is invalid or matches no parameter.
void refuse_unmatched(const Model& model, const std::string& expression, const std::string& key);

/// Return the parameters that require a gradient and the frozen ones, in the model's order.
NamedTensors trainable_parameters(const Model& model);
NamedTensors frozen_parameters(const Model& model);

}  // namespace phalanx

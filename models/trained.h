// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/named_tensors.h"
#include "models/model.h"

namespace phalanx {

/// Takes the parameters whose names an expression is found in out of training: they require no gradient from now on.
/// Before anything else looks at the parameters. Throws ConfigError, after `key` of the config, for an expression that
/// is none, that matches no parameter, and that matches all of them.
void freeze(Model& model, const std::string& expression, const std::string& key);

/// Throws ConfigError, after `key` of the config, for an expression that is none, or that matches no parameter.
void refuse_unmatched(const Model& model, const std::string& expression, const std::string& key);

/// The parameters that are trained, and the others, in the model's order.
NamedTensors trained_parameters(const Model& model);
NamedTensors frozen_parameters(const Model& model);

}  // namespace phalanx

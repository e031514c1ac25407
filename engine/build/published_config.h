// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "models/model.h"

namespace phalanx {

/// Compares a model that reads Hugging Face's weights (Published) with the config.json in the folder of the weights,
/// and returns a text for each contradiction:
///
///     pretrained/config.json has rms_norm_eps: 1e-06, but the model has 1e-05; set model.epsilon: 1e-06
///
/// Returns an empty list if there is no such file, and for other models. If `truncated`, the file may have more
/// positions than the model. Throws DataError for a file that is not JSON.
std::vector<std::string> contradictions_of_config(const std::string& weights, const Model& model,
                                                  bool truncated = false);

}  // namespace phalanx

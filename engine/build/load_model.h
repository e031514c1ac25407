// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "engine/experiment/config.h"
#include "framework/base/sample_spec.h"
#include "models/model.h"

namespace phalanx {

/// Returns the whole model of the config with the parameters and buffers of a file of weights, which are matched by
/// name (framework/base/storage/weights_file.h). Rows of embeddings that training had on parameter servers are read
/// from the file next to the weights. Throws DataError, which names the first few differences, if the weights do not
/// fit the model.
std::shared_ptr<Model> load_model(const ExperimentConfig& config, const ModelSpec& spec, const std::string& weights);

/// Returns the path of the file with rows of embeddings that a run writes next to these weights:
/// embeddings.safetensors.
std::string embedding_rows_path(const std::string& weights);

/// Makes a model whose embeddings are on parameter servers read its rows from the file next to the weights, for
/// evaluation only. Does nothing to other models. Throws DataError if the file is missing or damaged, or has other
/// embeddings.
void read_embedding_rows(const std::string& weights, Model& model);

}  // namespace phalanx

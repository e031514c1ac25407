// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "engine/experiment/config.h"
#include "framework/base/sample_spec.h"
#include "models/model.h"

namespace phalanx {

/// The config's model, whole, with the parameters and buffers that a file of weights has by their names
/// (framework/base/storage/weights_file.h). Throws DataError, with the first few of what does not fit, unless they are
/// those of the model. Rows of embeddings on parameter servers are those beside the weights.
std::shared_ptr<Model> load_model(const ExperimentConfig& config, const ModelSpec& spec, const std::string& weights);

/// The file of rows of embeddings that a run leaves in the folder of these weights: embeddings.safetensors.
std::string rows_beside(const std::string& weights);

/// Lets a model whose embeddings are on parameter servers read their rows from the file beside the weights from now on,
/// for evaluation only. Does nothing to other models. Throws DataError if the file is missing or damaged, or has other
/// embeddings.
void read_rows_beside(const std::string& weights, Model& model);

}  // namespace phalanx

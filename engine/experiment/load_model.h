#pragma once

#include <memory>
#include <string>

#include "engine/experiment/config.h"
#include "framework/base/sample_spec.h"
#include "models/model.h"

namespace phalanx {

/// The config's model, whole, with the parameters and buffers that a file of weights has by their names
/// (framework/base/storage/weights_file.h). Throws DataError, with the first few of what does not fit, unless they are
/// those of the model.
std::shared_ptr<Model> load_model(const ExperimentConfig& config, const ModelSpec& spec, const std::string& weights);

}  // namespace phalanx

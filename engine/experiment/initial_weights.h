#pragma once

#include <string>
#include <vector>

#include "engine/experiment/init_config.h"
#include "models/model.h"

namespace phalanx {

/// In what a file of weights (framework/base/storage/weights_file.h) and a model differ.
struct WeightsMismatch {
  std::vector<std::string> missing{};     // parameters and buffers of the model that the file does not have
  std::vector<std::string> reshaped{};    // those that it has with another shape
  std::vector<std::string> unexpected{};  // what it has beside

  bool any() const { return !missing.empty() || !reshaped.empty() || !unexpected.empty(); }
};

/// "fc.weight is missing, fc.bias has another shape and 3 more"
std::string describe(const WeightsMismatch& mismatch);

/// Copies what the file and the model have by the same names and shapes, in the model's dtypes. Throws DataError as
/// load_weights_file().
WeightsMismatch copy_weights(Model& model, const std::string& path);

/// Begins with the weights that section init names, and lets the gradients of what it freezes be nobody's. Of a whole
/// model, before it is used. Throws DataError for a file that does not fit, and ConfigError where freeze matches no
/// parameter, or leaves none to train.
void set_initial_weights(Model& model, const InitConfig& init);

/// The parameters that are trained, or those that are frozen.
NamedTensors parameters_where(const Model& model, bool trained);

}  // namespace phalanx

#pragma once

#include <string>

#include "framework/base/batch.h"

namespace phalanx {

/// Throws the ConfigError "model NAME needs NEEDS, but a sample is [1, 28, 28]", or "[64] indices", for a dataset whose
/// samples do not fit a model.
[[noreturn]] void refuse_sample(const std::string& model, const std::string& needs, const SampleSpec& sample);

}  // namespace phalanx

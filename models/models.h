#pragma once

#include <memory>

#include "framework/base/batch.h"
#include "framework/base/registry.h"

namespace phalanx {

class Model;  // models/model.h, which takes LibTorch's module classes with it

/// Models by name. A factory gets what a sample looks like and throws ConfigError for samples that do not fit it.
/// Initial values are drawn from LibTorch's default generator.
using Models = Registry<std::shared_ptr<Model>(const SampleSpec&)>;

}  // namespace phalanx

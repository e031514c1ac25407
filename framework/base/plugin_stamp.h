#pragma once

#include <torch/version.h>

#include <string>

#include "framework/base/version.h"

namespace phalanx {

/// What a plug-in and the program that loads it must have been built with alike: they share classes.
inline std::string plugin_stamp() {
  return std::string("Phalanx ") + kVersion + ", LibTorch " TORCH_VERSION ", compiler " + std::to_string(__GNUC__);
}

}  // namespace phalanx

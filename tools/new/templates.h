// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

// The files of a model called tiny: tiny.cc, tiny_test.cc, tiny.yaml and build.sh of this folder.
extern const char* const kModel;
extern const char* const kModelTest;
extern const char* const kModelConfig;
extern const char* const kBuildScript;

}  // namespace phalanx

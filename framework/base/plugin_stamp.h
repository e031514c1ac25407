// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/version.h>

#include "framework/base/version.h"

#define PHALANX_TEXT_OF(number) #number
#define PHALANX_COMPILER(number) "compiler " PHALANX_TEXT_OF(number)

/// States what a plug-in and the program that loads it must both have been built with, since they share classes.
#define PHALANX_PLUGIN_STAMP "Phalanx " PHALANX_VERSION ", LibTorch " TORCH_VERSION ", " PHALANX_COMPILER(__GNUC__)

/// The section of a plug-in that contains its stamp, so that the stamp can be read without loading the plug-in.
#define PHALANX_PLUGIN_SECTION ".phalanx_plugin_stamp"

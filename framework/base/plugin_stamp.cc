// SPDX-License-Identifier: Apache-2.0
// Compiled into every plug-in and into no program. States what the plug-in was built with.
#include "framework/base/plugin_stamp.h"

extern "C" [[gnu::section(PHALANX_PLUGIN_SECTION), gnu::used]] const char phalanx_plugin_stamp[] = PHALANX_PLUGIN_STAMP;

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// Loads shared libraries of a user's own, whose static initialisers add models, datasets, losses and so on to this
/// program's registries, just as its own files do. One that is loaded already stays as it is; none is ever unloaded.
///
/// A plug-in contains only its own code and refers to Phalanx and LibTorch, whose one copy is the program's: so it is
/// linked with nothing, and the program must export its symbols (//launch:program sees to it). It was compiled with
/// framework/base/plugin_stamp.cc, and its stamp must be this program's; none of its code runs before the stamps have
/// been compared. Paths are those of files, from the current folder. Call before other threads use a registry.
///
/// Throws ConfigError of the key `plugins` for a file that is missing, is no plug-in, or refers to what this program
/// lacks. An exception in an initialiser, such as that of a name that is taken, cannot be caught: it is printed, and
/// the process ends with status 2.
void load_plugins(const std::vector<std::string>& paths);

}  // namespace phalanx

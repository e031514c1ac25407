// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// Loads shared libraries of a user. Their static initialisers add models, datasets, losses and so on to this program's
/// registries, as the program's own files do. A library that is already loaded is not loaded again; none is ever
/// unloaded.
///
/// A plug-in contains only its own code and refers to Phalanx and LibTorch, whose only copy is the program's. So it is
/// linked with no library, and the program must export its symbols (//launch:program does so). A plug-in is compiled
/// with framework/base/plugin_stamp.cc, and its stamp must equal this program's. None of its code runs before the
/// stamps have been compared. Paths are file paths, relative to the current folder. Must be called before other threads
/// use a registry.
///
/// Throws ConfigError for the key `plugins` if a file is missing, is no plug-in, or refers to a symbol that this
/// program lacks. An exception in an initialiser, such as the one for a name that is taken, cannot be caught: it is
/// printed, and the process ends with status 2.
void load_plugins(const std::vector<std::string>& paths);

}  // namespace phalanx

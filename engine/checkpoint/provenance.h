// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/checkpoint/manifest.h"

namespace phalanx {

/// Where and how a checkpoint was made, for people: version of Phalanx and of LibTorch, the commit that is checked out
/// where the program was called (where that is a git repository), host, the kernels in use (framework/kernels), command
/// line and time (UTC).
Manifest::Words provenance();

/// The commit that is checked out in `folder`; empty where it is no git repository.
std::string git_commit(const std::string& folder);

}  // namespace phalanx

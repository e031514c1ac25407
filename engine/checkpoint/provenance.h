// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/checkpoint/manifest.h"

namespace phalanx {

/// Returns the origin of a checkpoint, for people: versions of Phalanx and LibTorch, the commit that is checked out in
/// the folder from which the program was called (if that is a git repository), SHA-256 of the config (`config`, in YAML
/// with all defaults), host, kernels in use (framework/kernels), command line and time (UTC).
Manifest::Strings provenance(const std::string& config);

/// Returns the commit that is checked out in `folder`, the root of a git repository or of one of its worktrees, or an
/// empty string if it is neither.
std::string git_commit(const std::string& folder);

}  // namespace phalanx

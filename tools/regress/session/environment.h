// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/history/records.h"

namespace phalanx::regress {

/// Returns this machine's hardware, and the versions of Phalanx, its libraries, the compiler and the kernel. `hosts`
/// describes where runs take place.
history::Environment read_environment(const std::string& hosts);

/// The commit that is checked out in a folder.
struct Checkout {
  std::string commit{};  // empty: the folder is not in a git repository, or there is no git
  bool dirty = false;    // files of the commit have been changed
};

Checkout read_checkout(const std::string& folder);

}  // namespace phalanx::regress

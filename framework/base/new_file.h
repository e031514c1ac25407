// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <string>

#include "framework/base/descriptor.h"

namespace phalanx {

/// Creates a file for writing. There must be nothing under this name: an existing link is not followed, and an existing
/// file is neither opened nor truncated, so another process cannot put one there under a name that it has guessed. If
/// that fails, returns an invalid descriptor and sets errno (EEXIST if something is there).
inline Descriptor create_new_file(const std::string& path, mode_t mode = 0666) {
  return Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
}

}  // namespace phalanx

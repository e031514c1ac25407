// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <string>

#include "framework/base/descriptor.h"

namespace phalanx {

/// Creates a file to write where nothing is yet: neither follows a link nor cuts or opens what another process has put
/// there under a name that it could guess. Invalid, with errno, where that fails; EEXIST: something is there.
inline Descriptor create_new_file(const std::string& path, mode_t mode = 0666) {
  return Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
}

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// A file as it lies in a tar archive (POSIX ustar): header and padded content. Names of up to 100 letters.
std::string tar_entry(const std::string& name, const std::string& content);

/// What an archive ends with.
std::string tar_end();

}  // namespace phalanx

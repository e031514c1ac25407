// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Returns a file in the form that a tar archive (POSIX ustar) has: header and padded content. The name has at most 100
/// bytes.
std::string tar_entry(const std::string& name, const std::string& content);

/// Returns the end of an archive.
std::string tar_end();

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

namespace phalanx {

/// The device and inode of a file or folder. They show whether a path still leads to the file that was opened there, or
/// whether that file has since been removed, renamed or replaced.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;

  bool operator==(const FileIdentity&) const = default;

  /// Returns the identity of the file at `path`. Follows links. Returns nullopt if there is no such file, or if it
  /// cannot be reached.
  static std::optional<FileIdentity> of(const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return std::nullopt;
    return FileIdentity{status.st_dev, status.st_ino};
  }

  static std::optional<FileIdentity> of(int descriptor) {
    struct stat status{};
    if (::fstat(descriptor, &status) != 0) return std::nullopt;
    return FileIdentity{status.st_dev, status.st_ino};
  }
};

}  // namespace phalanx

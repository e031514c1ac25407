// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace phalanx::chaos {

/// Gives this process and its children their own view of mounted file systems, so that what they mount is invisible to
/// the rest of the machine and vanishes with them. Returns why that is not permitted, or an empty string.
std::string enter_own_mounts();

/// A file system in memory, of a fixed size, that covers a folder during the lifetime of this object. Only after
/// enter_own_mounts().
class SmallDisk {
 public:
  /// Throws Error if it cannot be mounted.
  SmallDisk(std::string folder, std::int64_t bytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// Takes all space that is left, and gives it back. Throw Error if that fails.
  void fill();
  void free();

 private:
  std::string ballast() const { return folder_ + "/.ballast"; }

  std::string folder_;
};

}  // namespace phalanx::chaos

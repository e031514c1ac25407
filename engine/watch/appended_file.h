// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/descriptor.h"

namespace phalanx {

/// A file to which records are appended, each on disk as soon as it is added. A record that cannot be written, for
/// example because the disk is full, is kept and written before the next one; nothing of it is left in the file
/// meanwhile, so that readers find whole records alone.
class AppendedFile {
 public:
  /// Throws DataError, "PATH: cannot be opened: why".
  explicit AppendedFile(std::string path);

  /// Throws DataError, "PATH: cannot be written: why", where records are left to be written. Of more than 16 MiB, the
  /// newest ones are dropped. Throws DataError, "PATH: was removed or renamed ...", if the record was written to the
  /// file that was opened, but the path does not lead there any longer.
  void add(std::string_view record);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Descriptor file_;
  std::string unwritten_;
};

}  // namespace phalanx

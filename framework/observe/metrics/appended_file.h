// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/descriptor.h"

namespace phalanx {

/// A file to which records are appended. Each record is on disk as soon as it is added. A record that cannot be
/// written, for example because the disk is full, is kept and written before the next one. No part of it remains in the
/// file until then, so that readers only see whole records.
class AppendedFile {
 public:
  /// Throws DataError, "PATH: cannot be opened: why".
  explicit AppendedFile(std::string path);

  /// Appends a record. Throws DataError, "PATH: cannot be written: why", if records remain unwritten. If these exceed
  /// 16 MiB, the newest ones are dropped. Throws DataError, "PATH: was removed or renamed ...", if the record was
  /// written to the opened file, but the path no longer leads to this file.
  void add(std::string_view record);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Descriptor file_;
  std::string unwritten_;
};

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/descriptor.h"

namespace phalanx {

/// A file that is written part by part and then replaces the file of the same name in one step. A reader sees either
/// the old file or all of the new one, even after a crash or a power cut. Errors are DataErrors: "PATH: why".
class AtomicFile {
 public:
  /// Creates the temporary file. The folder must exist. Throws DataError if nothing can be written there.
  explicit AtomicFile(const std::string& path);

  /// Removes the temporary file unless replace() succeeded; the old file stays as it was.
  ~AtomicFile();

  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Writes bytes at `offset`; parts may come in any order.
  void write(std::string_view bytes, std::uint64_t offset);

  /// Blocks until all is on disk, under the file's name. Must be the last call.
  void replace();

 private:
  [[noreturn]] void fail() const;  // throws a DataError with the reason that errno gives

  std::string path_, temporary_;
  Descriptor file_;
  bool replaced_ = false;
};

}  // namespace phalanx

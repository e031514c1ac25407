// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/descriptor.h"

namespace phalanx {

/// A file that is written part by part, and replaces the one of its name in one step: a reader, and what is left after
/// a crash or a power cut, has either the old file or all of the new one. Errors are DataErrors: "PATH: why".
class AtomicFile {
 public:
  /// The folder must exist. Throws DataError where nothing can be written there.
  explicit AtomicFile(const std::string& path);

  /// Leaves the old file, and nothing else, unless it was replaced.
  ~AtomicFile();

  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Puts bytes at `offset`; parts may come in any order.
  void write(std::string_view bytes, std::uint64_t offset);

  /// Blocks until all is on disk, under the file's name. The last call.
  void replace();

 private:
  [[noreturn]] void fail() const;  // says what errno says

  std::string path_, temporary_;
  Descriptor file_;
  bool replaced_ = false;
};

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "framework/base/descriptor.h"

namespace phalanx {

/// A file in memory, for functions that read files by their path. It is gone with this object.
class MemoryFile {
 public:
  /// Throws DataError if there is not enough memory.
  explicit MemoryFile(std::string_view contents);

  std::string path() const;  // for this process only

 private:
  Descriptor file_;
};

}  // namespace phalanx

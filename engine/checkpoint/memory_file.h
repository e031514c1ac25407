// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "framework/base/descriptor.h"

namespace phalanx {

/// A file in memory, for functions that read files by their path. It is gone with this object.
class MemoryFile {
 public:
  /// Raises this process's soft limit of open files to its hard limit, which a checkpoint of many ranks may need.
  /// Throws DataError if there is not enough memory, or if more files are open than the hard limit permits.
  explicit MemoryFile(std::string_view contents);

  std::string path() const;  // for this process only

 private:
  Descriptor file_;
};

}  // namespace phalanx

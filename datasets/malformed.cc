// SPDX-License-Identifier: Apache-2.0
#include "datasets/malformed.h"

#include "framework/base/error.h"

namespace phalanx {

void throw_malformed(const std::filesystem::path& file, std::int64_t offset, const std::string& problem) {
  throw DataError(file.string() + ": byte " + std::to_string(offset) + ": " + problem);
}

}  // namespace phalanx

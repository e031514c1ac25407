// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/damage.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/random.h"

namespace phalanx::chaos {
namespace {

namespace fs = std::filesystem;

// Returns the files that have bytes, sorted by name.
std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.file_size() > 0) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  if (files.empty()) throw Error(folder + " has no files to damage");
  return files;
}

void overwrite(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  if (!file) throw DataError(path.string() + ": cannot be damaged");
}

}  // namespace

std::string damage(const std::string& checkpoint, const std::string& how, std::uint64_t seed) {
  const auto files = files_in(checkpoint);
  const fs::path& path = files[mix(seed, 1) % files.size()];
  std::string bytes = read_file(path);
  const std::size_t place = mix(seed, 2) % bytes.size();
  if (how == "checkpoint_torn") {
    fs::remove(path);
  } else if (how == "checkpoint_truncated") {
    overwrite(path, bytes.substr(0, place));
  } else if (how == "checkpoint_flipped") {
    bytes[place] = static_cast<char>(bytes[place] ^ (1 << mix(seed, 3) % 8));
    overwrite(path, bytes);
  } else {
    throw Error("no damage is called " + how);
  }
  return path;
}

}  // namespace phalanx::chaos

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace phalanx {

/// An image in a folder of its class.
struct ImageFile {
  std::filesystem::path path;
  std::int64_t label = 0;
};

/// The names of the folders below `folder`, sorted. Throws DataError where there is none.
std::vector<std::string> image_classes(const std::filesystem::path& folder);

/// The JPEG and PNG files (.jpg, .jpeg, .png) in the folders below `folder`, whose names are classes, in the order of
/// classes and then of names. A label is the place of its class in `classes`, which is sorted. Throws DataError for a
/// folder that is no class, and where there is no file.
std::vector<ImageFile> image_files(const std::filesystem::path& folder, const std::vector<std::string>& classes);

}  // namespace phalanx

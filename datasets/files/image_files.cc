#include "datasets/files/image_files.h"

#include <algorithm>
#include <cctype>
#include <system_error>

#include "framework/base/error.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& file) {
  std::string suffix = file.extension().string();
  std::ranges::transform(suffix, suffix.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return suffix == ".jpg" || suffix == ".jpeg" || suffix == ".png";
}

// Names of what is in a folder, sorted.
template <class Predicate>
std::vector<std::string> names_in(const fs::path& folder, Predicate wanted) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (wanted(*entry)) names.push_back(entry->path().filename());
  }
  if (error) throw DataError(folder.string() + ": " + error.message());
  std::ranges::sort(names);
  return names;
}

// Sorted, too. An entry whose kind cannot be told, such as a link in a circle, is no folder.
std::vector<std::string> folders_in(const fs::path& folder) {
  return names_in(folder, [](const fs::directory_entry& entry) {
    std::error_code unknown;
    return entry.is_directory(unknown);
  });
}

}  // namespace

std::vector<std::string> image_classes(const fs::path& folder) {
  auto names = folders_in(folder);
  if (names.empty()) throw DataError(folder.string() + ": has no folders, of which there is to be one for each class");
  return names;
}

std::vector<ImageFile> image_files(const fs::path& folder, const std::vector<std::string>& classes) {
  std::vector<ImageFile> files;
  for (const auto& name : folders_in(folder)) {
    const auto found = std::ranges::lower_bound(classes, name);
    if (found == classes.end() || *found != name) {
      throw DataError((folder / name).string() + ": no class of the training images, which have " +
                      std::to_string(classes.size()) + " folders; rename it, or move it away");
    }
    for (const auto& file : names_in(folder / name, [](const auto& entry) { return is_image(entry.path()); })) {
      files.push_back({folder / name / file, found - classes.begin()});
    }
  }
  if (!files.empty()) return files;
  throw DataError(folder.string() + ": has no images; they are expected as " + folder.string() +
                  "/CLASS/FILE.jpg (or .jpeg or .png)");
}

}  // namespace phalanx

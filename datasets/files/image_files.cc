// SPDX-License-Identifier: Apache-2.0
#include "datasets/files/image_files.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "datasets/images/decode.h"
#include "datasets/random_stream.h"
#include "datasets/shuffle.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/random.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAnnotations = "val_annotations.txt";

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

// Returns the sorted names of the folders in a folder. An entry whose type cannot be determined, such as a circular
// link, does not count as a folder.
std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (entry->is_directory(unknown) && !is_hidden(entry->path())) names.push_back(entry->path().filename());
  }
  if (error) throw DataError(folder.string() + ": " + error.message());
  std::ranges::sort(names);
  return names;
}

// Collects the images below one folder.
class Split {
 public:
  Split(fs::path folder, const std::vector<std::string>& classes)
      : folder_(std::move(folder)), classes_(classes), has_images_(classes.size(), false) {}

  // Adds the images below the folder of a class.
  void add_class(const std::string& name) {
    const auto label = label_of(name);
    if (!label) {
      throw DataError((folder_ / name).string() + ": is not a class of the training images, which have " +
                      std::to_string(classes_.size()) + " folders; rename it, or move it away");
    }
    std::vector<fs::path> paths;
    std::error_code error;
    fs::recursive_directory_iterator entry(folder_ / name, error);
    for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
      if (is_hidden(entry->path())) {
        entry.disable_recursion_pending();
      } else if (is_image(entry->path())) {
        paths.push_back(entry->path());
      }
    }
    if (error) throw DataError((folder_ / name).string() + ": " + error.message());
    std::ranges::sort(paths);
    for (auto& path : paths) add(std::move(path), *label);
  }

  // Adds the images that the file of annotations names.
  void add_annotated() {
    const auto file = folder_ / kAnnotations;
    std::ifstream lines(file);
    std::int64_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      const auto tab = line.find('\t');
      const auto label = tab == std::string::npos
                             ? std::nullopt
                             : label_of(line.substr(tab + 1, line.find_first_of("\t\r", tab + 1) - tab - 1));
      if (!label) {
        throw DataError(file.string() + ":" + std::to_string(number) +
                        ": expected a file, a tab and one of the classes of the training images");
      }
      add(folder_ / "images" / line.substr(0, tab), *label);
    }
    std::ranges::stable_sort(files_, {}, &ImageFile::label);
  }

  std::vector<ImageFile> finish() {
    if (!others_.empty()) {
      std::vector<std::string> counts;
      for (const auto& [suffix, count] : others_) counts.push_back(std::to_string(count) + " " + suffix);
      log_warning() << folder_.string() << ": images of these formats are skipped: " << join(counts, ", ")
                    << "; convert them to JPEG, PNG or WebP";
    }
    if (files_.empty()) {
      throw DataError(folder_.string() + ": has no images; they are expected as " + folder_.string() +
                      "/CLASS/FILE.jpg (or .jpeg, .png or .webp)");
    }
    std::vector<std::string> empty;
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      if (!has_images_[i]) empty.push_back(classes_[i]);
    }
    constexpr std::size_t kMaxNamed = 5;
    if (!empty.empty()) {
      const auto count = empty.size();
      empty.resize(std::min(count, kMaxNamed));
      log_warning() << folder_.string() << ": " << count << " of " << classes_.size()
                    << " classes have no images: " << join(empty, ", ") << (count > kMaxNamed ? ", ..." : "");
    }
    return std::move(files_);
  }

 private:
  std::optional<std::int64_t> label_of(const std::string& name) const {
    const auto found = std::ranges::lower_bound(classes_, name);
    return found == classes_.end() || *found != name ? std::nullopt : std::optional(found - classes_.begin());
  }

  bool is_image(const fs::path& path) {
    const auto suffix = path.extension().string();
    if (is_other_image(suffix)) ++others_[suffix];
    return is_decoded(suffix);
  }

  void add(fs::path path, std::int64_t label) {
    files_.push_back({std::move(path), label});
    has_images_[static_cast<std::size_t>(label)] = true;
  }

  fs::path folder_;
  const std::vector<std::string>& classes_;
  std::vector<ImageFile> files_;
  std::vector<bool> has_images_;                // by class
  std::map<std::string, std::int64_t> others_;  // number of other files by suffix
};

std::vector<ImageFile> images_in(const fs::path& folder, const std::vector<std::string>& classes) {
  Split split(folder, classes);
  if (std::error_code unknown; fs::exists(folder / kAnnotations, unknown)) {
    split.add_annotated();
  } else {
    for (const auto& name : folders_in(folder)) split.add_class(name);
  }
  return split.finish();
}

}  // namespace

ImageFolders find_images(const fs::path& root) {
  std::error_code unknown;
  const auto has = [&](const char* name) { return fs::is_directory(root / name, unknown); };
  ImageFolders found;
  const auto train = has("train") ? root / "train" : root;
  found.classes = folders_in(train);
  if (found.classes.empty()) {
    throw DataError(train.string() + ": has no folders; there must be one for each class");
  }
  found.train = images_in(train, found.classes);
  if (train == root) return found;
  for (const char* name : {"val", "valid", "validation"}) {
    if (found.validation.empty() && has(name)) found.validation = images_in(root / name, found.classes);
  }
  if (!has("test")) return found;
  const auto folders = folders_in(root / "test");
  const bool is_class = std::ranges::binary_search(found.classes, "images");
  if (folders == std::vector<std::string>{"images"} && !is_class &&
      !fs::exists(root / "test" / kAnnotations, unknown)) {
    log_warning() << (root / "test").string() << ": is ignored, since its images have no classes";
  } else {
    found.test = images_in(root / "test", found.classes);
  }
  return found;
}

void hold_out_images(double share, std::int64_t seed, ImageFolders& folders) {
  std::vector<ImageFile> train, test;
  for (auto first = folders.train.begin(); first != folders.train.end();) {
    const auto label = first->label;
    const auto last = std::find_if(first, folders.train.end(), [&](const auto& file) { return file.label != label; });
    const auto count = last - first;
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    shuffle(order, RandomStream(mix(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(label))));
    const auto wanted = static_cast<std::int64_t>(std::lround(share * static_cast<double>(count)));
    const auto held = count == 1 ? 0 : std::clamp<std::int64_t>(wanted, 1, count - 1);
    const std::set<std::int64_t> drawn(order.begin(), order.begin() + held);
    for (std::int64_t i = 0; first != last; ++first, ++i)
      (drawn.contains(i) ? test : train).push_back(std::move(*first));
  }
  folders.train = std::move(train);
  folders.test = std::move(test);
}

}  // namespace phalanx

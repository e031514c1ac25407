// A folder of JPEG and PNG files, laid out as ImageNet mostly is: ROOT/train/CLASS/FILE, and the same under test and
// val. Classes are the folders of train, numbered in the order of their names; files of a class come in the order of
// theirs. Files are read and decoded when they are gathered.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/images/decode.h"
#include "datasets/images/image_config.h"
#include "datasets/root.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

struct ImageFolderConfig : ImageConfig {
  std::string root;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of train, test and val; empty: ${PHALANX_DATA}/images, else data/images");
    ImageConfig::visit(v);
  }
};

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

class FolderSource final : public ImageSource {
 public:
  FolderSource(fs::path folder, const std::vector<std::string>& classes, DecodeOptions decoding)
      : folder_(std::move(folder)), classes_(classes), decoding_(decoding) {
    for (const auto& name : names_in(folder_, [](const auto& entry) { return entry.is_directory(); })) {
      const auto found = std::ranges::lower_bound(classes_, name);
      if (found == classes_.end() || *found != name) {
        throw DataError((folder_ / name).string() + ": no class of the training images, which have " +
                        std::to_string(classes_.size()) + " folders; rename it, or move it away");
      }
      const auto label = found - classes_.begin();
      for (auto& file : names_in(folder_ / name, [](const auto& entry) { return is_image(entry.path()); })) {
        files_.push_back({label, std::move(file)});
      }
    }
    if (files_.empty()) {
      throw DataError(folder_.string() + ": has no images; they are expected as " + folder_.string() +
                      "/CLASS/FILE.jpg (or .jpeg or .png)");
    }
  }

  std::int64_t size() const override { return std::ssize(files_); }
  std::int64_t label(std::int64_t index) const override { return files_[static_cast<std::size_t>(index)].label; }
  at::Tensor image(std::int64_t index) const override {
    const auto file = name(index);
    return decode_image(read_file(file), decoding_, file);
  }
  std::string name(std::int64_t index) const override {
    const auto& [label, file] = files_[static_cast<std::size_t>(index)];
    return folder_ / classes_[static_cast<std::size_t>(label)] / file;
  }

 private:
  struct File {
    std::int64_t label;
    std::string name;
  };

  fs::path folder_;
  std::vector<std::string> classes_;
  DecodeOptions decoding_;
  std::vector<File> files_;
};

Splits load_image_folder(const ImageFolderConfig& config) {
  const fs::path root = dataset_root(config.root, "images");
  std::error_code unreadable;
  const auto folder = [&](const char* name) -> std::optional<fs::path> {
    return fs::is_directory(root / name, unreadable) ? std::optional(root / name) : std::nullopt;
  };
  const auto train = folder("train"), val = folder("val"), test = folder("test");
  if (!train || !(val || test)) {
    throw DataError(root.string() +
                    ": expected the folders train and test (and perhaps val), with a folder of JPEG or "
                    "PNG files in them for each class, but " +
                    (train ? "test" : "train") + " is missing. Set dataset.root to where they are");
  }
  const auto classes = names_in(*train, [](const auto& entry) { return entry.is_directory(); });
  const auto split = [&](const fs::path& path, bool training) {
    return config.samples(std::make_shared<FolderSource>(path, classes, config.decoding()), std::ssize(classes),
                          training);
  };
  Splits splits{.train = split(*train, true), .validation = nullptr, .test = split(test ? *test : *val, false)};
  if (test && val) splits.validation = split(*val, false);
  return splits;
}

const bool registered = Datasets::global().add<ImageFolderConfig>(
    "image_folder", "JPEG and PNG files in a folder for each class", load_image_folder);

}  // namespace
}  // namespace phalanx

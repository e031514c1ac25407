// A folder of JPEG and PNG files, laid out as ImageNet mostly is: ROOT/train/CLASS/FILE, and the same under test and
// val. Classes are the folders of train, numbered in the order of their names; files of a class come in the order of
// theirs. Files are read and decoded when they are gathered.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/files/image_files.h"
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

class FolderSource final : public ImageSource {
 public:
  FolderSource(std::vector<ImageFile> files, DecodeOptions decoding) : files_(std::move(files)), decoding_(decoding) {}

  std::int64_t size() const override { return std::ssize(files_); }
  std::int64_t label(std::int64_t index) const override { return files_[static_cast<std::size_t>(index)].label; }
  at::Tensor image(std::int64_t index) const override {
    const auto file = name(index);
    return decode_image(read_file(file), decoding_, file);
  }
  std::string name(std::int64_t index) const override { return files_[static_cast<std::size_t>(index)].path; }

 private:
  std::vector<ImageFile> files_;
  DecodeOptions decoding_;
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
  const auto classes = image_classes(*train);
  const auto split = [&](const fs::path& path, bool training) {
    auto source = std::make_shared<FolderSource>(image_files(path, classes), config.decoding());
    return config.samples(std::move(source), std::ssize(classes), training);
  };
  Splits splits{.train = split(*train, true), .validation = nullptr, .test = split(test ? *test : *val, false)};
  if (test && val) splits.validation = split(*val, false);
  return splits;
}

const bool registered = Datasets::global().add<ImageFolderConfig>(
    "image_folder", "JPEG and PNG files in a folder for each class", load_image_folder);

}  // namespace
}  // namespace phalanx

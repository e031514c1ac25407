// SPDX-License-Identifier: Apache-2.0
// Images in files, with one folder per class (files/image_files.h). gather() reads and decodes the files.
#include <cstdint>
#include <filesystem>
#include <memory>
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
  double test_share = 0;
  std::int64_t test_seed = 1;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of train, test and val; empty: ${PHALANX_DATA}/images, else data/images");
    v("test_share", test_share,
      "share of each class's training images to test on, if there is no folder of test images; 0: there must be one",
      config::between(0, 1));
    v("test_seed", test_seed, "random seed that chooses these images");
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
  auto folders = find_images(root);
  if (folders.test.empty()) folders.test = std::exchange(folders.validation, {});
  if (config.test_share > 0) {
    if (!folders.test.empty()) {
      throw ConfigError("dataset.test_share: " + root.string() + " has images to test on; leave this key out");
    }
    hold_out_images(config.test_share, config.test_seed, folders);
  }
  if (folders.test.empty()) {
    throw DataError(root.string() +
                    ": has no images to test on: expected the folders train, and test or val, with a folder of images "
                    "in them for each class; or set dataset.test_share to a share of the training images");
  }
  const auto split = [&](std::vector<ImageFile>& files, bool training) -> std::shared_ptr<const Dataset> {
    if (files.empty()) return nullptr;
    auto source = std::make_shared<FolderSource>(std::move(files), config.decoding());
    return config.samples(std::move(source), std::ssize(folders.classes), training);
  };
  return {.train = split(folders.train, true),
          .validation = split(folders.validation, false),
          .test = split(folders.test, false)};
}

const bool image_folder_registered = Datasets::global().add<ImageFolderConfig>(
    "image_folder", "JPEG, PNG and WebP files in a folder for each class", load_image_folder);

}  // namespace
}  // namespace phalanx

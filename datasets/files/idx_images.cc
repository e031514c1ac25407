// SPDX-License-Identifier: Apache-2.0
#include "datasets/files/idx_images.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "datasets/files/idx_file.h"
#include "datasets/malformed.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

std::vector<std::int64_t> read_labels(const fs::path& file, std::int64_t images, const IdxImages& expected) {
  const auto [shape, values] = read_idx(file, 1);
  if (shape[0] != images) {
    throw_malformed(file, 4, std::to_string(shape[0]) + " labels for " + std::to_string(images) + " images");
  }
  const auto last = expected.first_label + expected.classes - 1;
  std::vector<std::int64_t> labels;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < expected.first_label || values[i] > last) {
      throw_malformed(file, idx_offset(1, static_cast<std::int64_t>(i)),
                      "label " + std::to_string(values[i]) + ", expected " + std::to_string(expected.first_label) +
                          " to " + std::to_string(last));
    }
    labels.push_back(values[i] - expected.first_label);
  }
  return labels;
}

// Transposes all images, which then have height x width pixels.
void transpose(std::vector<std::uint8_t>& pixels, std::int64_t height, std::int64_t width) {
  std::vector<std::uint8_t> image(static_cast<std::size_t>(height * width));
  for (auto* to = pixels.data(); to != pixels.data() + pixels.size(); to += height * width) {
    std::copy_n(to, height * width, image.data());
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) to[y * width + x] = image[static_cast<std::size_t>(x * height + y)];
    }
  }
}

struct Size {
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool operator==(const Size&) const = default;
};

// Reads one split and sets `size` to the size of its images.
std::shared_ptr<const Dataset> read(const fs::path& images_file, const fs::path& labels_file, const IdxImages& expected,
                                    const IdxPixels& as, bool training, Size& size) {
  auto [shape, pixels] = read_idx(images_file, 3);
  size = {.height = shape[expected.transposed ? 2 : 1], .width = shape[expected.transposed ? 1 : 2]};
  if (expected.transposed) transpose(pixels, size.height, size.width);
  Images images{.pixels = std::move(pixels), .labels = read_labels(labels_file, shape[0], expected)};
  return images_in_memory(
      std::move(images), classification_samples({1, size.height, size.width}, expected.classes),
      {.statistics = {{.mean = static_cast<float>(as.mean), .deviation = static_cast<float>(as.deviation)}},
       .transforms = training ? as.transforms : std::vector<TransformConfig>()});
}

// Some archives have train-images.idx3-ubyte instead of train-images-idx3-ubyte.
DatasetFiles with_names_in(const fs::path& root, DatasetFiles files) {
  for (auto& name : files.names) {
    auto dotted = name;
    dotted[dotted.rfind("-idx")] = '.';
    const auto exists = [&](const std::string& suffix) {
      std::error_code unreadable;
      return fs::exists(root / (dotted + suffix), unreadable) && !fs::exists(root / (name + suffix), unreadable);
    };
    if (std::ranges::any_of(files.suffixes, exists)) name = dotted;
  }
  return files;
}

}  // namespace

std::vector<std::string> idx_image_names(const std::string& train, const std::string& test) {
  return {train + "-images-idx3-ubyte", train + "-labels-idx1-ubyte", test + "-images-idx3-ubyte",
          test + "-labels-idx1-ubyte"};
}

Splits load_idx_images(const DatasetFiles& files, const std::string& root, const IdxImages& expected,
                       const IdxPixels& pixels) {
  const auto folder = dataset_root(root, files.dataset);
  const auto paths = find_files(with_names_in(folder, files), folder);
  Size train, test;
  Splits splits{.train = read(paths.at(0), paths.at(1), expected, pixels, /*training=*/true, train),
                .test = read(paths.at(2), paths.at(3), expected, pixels, /*training=*/false, test)};
  if (train == test) return splits;
  const auto text = [](const Size& size) { return std::to_string(size.height) + " x " + std::to_string(size.width); };
  throw_malformed(paths[2], 8, "images of " + text(test) + " pixels, but " + paths[0].string() + " has " + text(train));
}

}  // namespace phalanx

#include "datasets/files/idx_images.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datasets/files/idx_file.h"
#include "datasets/malformed.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSide = 28;

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

void transpose(std::vector<std::uint8_t>& pixels) {
  for (auto* image = pixels.data(); image != pixels.data() + pixels.size(); image += kSide * kSide) {
    for (std::int64_t y = 0; y < kSide; ++y) {
      for (std::int64_t x = 0; x < y; ++x) std::swap(image[y * kSide + x], image[x * kSide + y]);
    }
  }
}

std::shared_ptr<const Dataset> read(const fs::path& images_file, const fs::path& labels_file, const IdxImages& expected,
                                    const IdxPixels& as, bool training) {
  auto [shape, pixels] = read_idx(images_file, 3);
  for (const int dimension : {1, 2}) {
    if (shape[static_cast<std::size_t>(dimension)] == kSide) continue;
    throw_malformed(
        images_file, 4 + 4 * dimension,
        "images of " + std::to_string(shape[1]) + " x " + std::to_string(shape[2]) + " pixels, expected 28 x 28");
  }
  if (expected.transposed) transpose(pixels);
  Images images{.pixels = std::move(pixels), .labels = read_labels(labels_file, shape[0], expected)};
  return images_in_memory(
      std::move(images), classification_samples({1, kSide, kSide}, expected.classes),
      {.statistics = {{.mean = static_cast<float>(as.mean), .deviation = static_cast<float>(as.deviation)}},
       .transforms = training ? as.transforms : std::vector<TransformConfig>()});
}

}  // namespace

std::vector<std::string> idx_image_names(const std::string& train, const std::string& test) {
  return {train + "-images-idx3-ubyte", train + "-labels-idx1-ubyte", test + "-images-idx3-ubyte",
          test + "-labels-idx1-ubyte"};
}

Splits load_idx_images(const DatasetFiles& files, const std::string& root, const IdxImages& expected,
                       const IdxPixels& pixels) {
  const auto paths = find_files(files, dataset_root(root, files.dataset));
  return {.train = read(paths.at(0), paths.at(1), expected, pixels, /*training=*/true),
          .test = read(paths.at(2), paths.at(3), expected, pixels, /*training=*/false)};
}

}  // namespace phalanx

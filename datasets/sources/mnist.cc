#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/idx_file.h"
#include "datasets/image_dataset.h"
#include "datasets/malformed.h"
#include "datasets/root.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSide = 28;
constexpr std::int64_t kClasses = 10;
constexpr std::array kStatistics{ChannelStatistics{.mean = 0.1307f, .deviation = 0.3081f}};  // of the training images

struct MnistConfig {
  std::string root;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the four IDX files; empty: ${PHALANX_DATA}/mnist, else data/mnist");
  }
};

std::vector<std::int64_t> read_labels(const fs::path& file, std::int64_t images) {
  const auto [shape, values] = read_idx(file, 1);
  if (shape[0] != images) {
    throw_malformed(file, 4, std::to_string(shape[0]) + " labels for " + std::to_string(images) + " images");
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < kClasses) continue;
    throw_malformed(file, idx_offset(1, static_cast<std::int64_t>(i)),
                    "label " + std::to_string(values[i]) + ", expected 0 to 9");
  }
  return {values.begin(), values.end()};
}

std::shared_ptr<const Dataset> read_split(const fs::path& images_file, const fs::path& labels_file) {
  auto [shape, pixels] = read_idx(images_file, 3);
  for (const int dimension : {1, 2}) {
    if (shape[dimension] == kSide) continue;
    throw_malformed(
        images_file, 4 + 4 * dimension,
        "images of " + std::to_string(shape[1]) + " x " + std::to_string(shape[2]) + " pixels, expected 28 x 28");
  }
  Images images{.pixels = std::move(pixels), .labels = read_labels(labels_file, shape[0])};
  const auto spec = classification_samples({1, kSide, kSide}, kClasses);
  return std::make_shared<ImageDataset>(std::move(images), spec, kStatistics);
}

Splits load_mnist(const MnistConfig& config) {
  const DatasetFiles files{
      .dataset = "mnist",
      .names = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                "t10k-labels-idx1-ubyte"},
      .suffixes = {"", ".gz"},
      .how_to_get =
          "To get them: http://yann.lecun.com/exdb/mnist/ or any mirror of MNIST, compressed or not.\n"
          "To use them from elsewhere: set dataset.root to their folder, or PHALANX_DATA to the folder above it.\n"
          "To train without files: the dataset \"digits\" generates its own."};
  const auto paths = find_files(files, dataset_root(config.root, files.dataset));
  return {.train = read_split(paths[0], paths[1]), .test = read_split(paths[2], paths[3])};
}

const bool registered =
    Datasets::global().add<MnistConfig>("mnist", "MNIST: 70,000 handwritten digits, 28 x 28 pixels", load_mnist);

}  // namespace
}  // namespace phalanx

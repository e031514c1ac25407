#include <string>

#include "datasets/dataset.h"
#include "datasets/root.h"
#include "datasets/sources/idx_images.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

constexpr IdxImages kImages{.statistics = {.mean = 0.1307f, .deviation = 0.3081f}};  // of the training images

struct MnistConfig {
  std::string root;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the four IDX files; empty: ${PHALANX_DATA}/mnist, else data/mnist");
  }
};

Splits load_mnist(const MnistConfig& config) {
  const DatasetFiles files{
      .dataset = "mnist",
      .names = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                "t10k-labels-idx1-ubyte"},
      .suffixes = {"", ".gz"},
      .how_to_get =
          "To get them: bazel run //tools:download -- mnist, or any mirror of MNIST, compressed or not.\n"
          "To use them from elsewhere: set dataset.root to their folder, or PHALANX_DATA to the folder above it.\n"
          "To train without files: the dataset \"digits\" generates its own."};
  const auto paths = find_files(files, dataset_root(config.root, files.dataset));
  return {.train = read_idx_images(paths[0], paths[1], kImages), .test = read_idx_images(paths[2], paths[3], kImages)};
}

const bool registered =
    Datasets::global().add<MnistConfig>("mnist", "MNIST: 70,000 handwritten digits, 28 x 28 pixels", load_mnist);

}  // namespace
}  // namespace phalanx

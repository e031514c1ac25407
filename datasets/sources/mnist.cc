// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "datasets/dataset.h"
#include "datasets/files/idx_images.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

struct MnistConfig {
  std::string root;
  IdxPixels pixels{.mean = 0.1307, .deviation = 0.3081};

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the four IDX files; empty: ${PHALANX_DATA}/mnist, else data/mnist");
    pixels.visit(v);
  }
};

Splits load_mnist(const MnistConfig& config) {
  const DatasetFiles files{
      .dataset = "mnist",
      .names = idx_image_names("train", "t10k"),
      .suffixes = {"", ".gz"},
      .how_to_get =
          "To get them: bazel run //tools:download -- mnist, or any mirror of MNIST, compressed or not.\n"
          "To use them from elsewhere: set dataset.root to their folder, or PHALANX_DATA to the folder above it.\n"
          "To train without files: the dataset \"digits\" generates its own."};
  return load_idx_images(files, config.root, {}, config.pixels);
}

const bool mnist_registered =
    Datasets::global().add<MnistConfig>("mnist", "MNIST: 70,000 handwritten digits, 28 x 28 pixels", load_mnist);

}  // namespace
}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
// Fashion-MNIST (Xiao, Rasul, Vollgraf 2017, arXiv:1708.07747): images of clothes in the file format of MNIST.
#include <string>

#include "datasets/dataset.h"
#include "datasets/files/idx_images.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

struct FashionMnistConfig {
  std::string root;
  IdxPixels pixels{.mean = 0.2860, .deviation = 0.3530};

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the four IDX files; empty: ${PHALANX_DATA}/fashion_mnist, else data/fashion_mnist");
    pixels.visit(v);
  }
};

Splits load_fashion_mnist(const FashionMnistConfig& config) {
  const DatasetFiles files{
      .dataset = "fashion_mnist",
      .names = idx_image_names("train", "t10k"),
      .suffixes = {"", ".gz"},
      .how_to_get =
          "To get them: bazel run //tools:download -- fashion_mnist.\n"
          "To use them from elsewhere: set dataset.root to their folder, or PHALANX_DATA to the folder above it.\n"
          "To train without files: the dataset \"digits\" generates its own."};
  return load_idx_images(files, config.root, {}, config.pixels);
}

const bool fashion_mnist_registered = Datasets::global().add<FashionMnistConfig>(
    "fashion_mnist", "Fashion-MNIST: 70,000 images of clothes, 28 x 28 pixels", load_fashion_mnist);

}  // namespace
}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
// MNIST, and Fashion-MNIST (Xiao, Rasul, Vollgraf 2017, arXiv:1708.07747), images of clothes in the same file format.
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
    v("root", root,
      "folder of the four IDX files; empty: the one with the dataset's name in ${PHALANX_DATA}, else in data");
    pixels.visit(v);
  }
};

struct FashionMnistConfig : MnistConfig {
  FashionMnistConfig() { pixels = {.mean = 0.2860, .deviation = 0.3530}; }
};

Splits load(const MnistConfig& config, const std::string& name, const std::string& other_sources) {
  const DatasetFiles files{.dataset = name,
                           .names = idx_image_names("train", "t10k"),
                           .suffixes = {"", ".gz"},
                           .how_to_get = "To get them: bazel run //tools:download -- " + name + other_sources + ".\n" +
                                         kFromElsewhere +
                                         "\nTo train without files: the dataset \"digits\" generates its own."};
  return load_idx_images(files, config.root, {}, config.pixels);
}

const bool mnist_registered = Datasets::global().add<MnistConfig>(
    "mnist", "MNIST: 70,000 handwritten digits, 28 x 28 pixels",
    [](const MnistConfig& config) { return load(config, "mnist", ", or any mirror of MNIST, compressed or not"); });

const bool fashion_mnist_registered = Datasets::global().add<FashionMnistConfig>(
    "fashion_mnist", "Fashion-MNIST: 70,000 images of clothes, 28 x 28 pixels",
    [](const FashionMnistConfig& config) { return load(config, "fashion_mnist", ""); });

}  // namespace
}  // namespace phalanx

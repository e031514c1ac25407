// Fashion-MNIST (Xiao, Rasul, Vollgraf 2017, arXiv:1708.07747): the files of MNIST, with images of clothes.
#include <string>

#include "datasets/dataset.h"
#include "datasets/root.h"
#include "datasets/sources/idx_images.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

constexpr IdxImages kImages{.statistics = {.mean = 0.2860f, .deviation = 0.3530f}};  // of the training images

struct FashionMnistConfig {
  std::string root;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the four IDX files; empty: ${PHALANX_DATA}/fashion_mnist, else data/fashion_mnist");
  }
};

Splits load_fashion_mnist(const FashionMnistConfig& config) {
  const DatasetFiles files{
      .dataset = "fashion_mnist",
      .names = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                "t10k-labels-idx1-ubyte"},
      .suffixes = {"", ".gz"},
      .how_to_get =
          "To get them: bazel run //tools:download -- fashion_mnist.\n"
          "To use them from elsewhere: set dataset.root to their folder, or PHALANX_DATA to the folder above it.\n"
          "To train without files: the dataset \"digits\" generates its own."};
  const auto paths = find_files(files, dataset_root(config.root, files.dataset));
  return {.train = read_idx_images(paths[0], paths[1], kImages), .test = read_idx_images(paths[2], paths[3], kImages)};
}

const bool registered = Datasets::global().add<FashionMnistConfig>(
    "fashion_mnist", "Fashion-MNIST: 70,000 images of clothes, 28 x 28 pixels", load_fashion_mnist);

}  // namespace
}  // namespace phalanx

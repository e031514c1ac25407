// CIFAR-10 (Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images) in its binary version: files of
// records without a header,
//
//     offset 0     label, 0 to 9
//     offset 1     3,072 bytes: 32 x 32 pixels of red, then of green, then of blue, each row by row
//
// 10,000 a file as it is published; any number will do. Training may crop and flip (datasets/augmentation.h).
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "datasets/augmentation.h"
#include "datasets/dataset.h"
#include "datasets/root.h"
#include "datasets/sources/cifar_records.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr CifarRecords kRecords{.dataset = "cifar10", .title = "CIFAR-10", .classes = 10};
constexpr const char* kFolderInArchive = "cifar-10-batches-bin";

struct Cifar10Config {
  std::string root;
  bool augment = false;
  std::vector<double> mean{0.4914, 0.4822, 0.4465};  // of the training images, as is the deviation
  std::vector<double> deviation{0.2470, 0.2435, 0.2616};

  template <class V>
  void visit(V& v) {
    v("root", root,
      "folder of the six files, or of cifar-10-batches-bin; empty: ${PHALANX_DATA}/cifar10, else data/cifar10");
    v("augment", augment, "random crops with 4 pixels of padding, and random horizontal flips, of training images");
    v("mean", mean, "mean of red, green and blue (0 to 1), which is subtracted", config::between(0, 1));
    v("deviation", deviation, "standard deviation of red, green and blue, which divides", config::above(0));
  }
};

Splits load_cifar10(const Cifar10Config& config) {
  const DatasetFiles files{
      .dataset = "cifar10",
      .names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
                "test_batch.bin"},
      .how_to_get =
          "To get them: https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, unpacked there.\n"
          "To use them from elsewhere: set dataset.root to their folder, or PHALANX_DATA to the folder above it.\n"
          "To train without files: the dataset \"digits\" generates its own."};
  fs::path root = dataset_root(config.root, files.dataset);
  std::error_code unreadable;
  if (fs::is_directory(root / kFolderInArchive, unreadable)) root /= kFolderInArchive;
  const auto paths = find_files(files, root);
  const auto statistics = cifar_statistics(kRecords, config.mean, config.deviation);
  const Augmentation augmentation{.padding = config.augment ? 4 : 0, .flip = config.augment};
  return {.train = read_cifar(std::span(paths).first(5), kRecords, statistics, augmentation),
          .test = read_cifar(std::span(paths).last(1), kRecords, statistics, {})};
}

const bool registered = Datasets::global().add<Cifar10Config>(
    "cifar10", "CIFAR-10: 60,000 images in 10 classes, 32 x 32 pixels", load_cifar10);

}  // namespace
}  // namespace phalanx

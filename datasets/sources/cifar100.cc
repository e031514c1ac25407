// CIFAR-100 (Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images) in its binary version: two files
// of records, each with the coarse label (0 to 19), the fine one (0 to 99) and the pixels as those of CIFAR-10.
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

constexpr const char* kFolderInArchive = "cifar-100-binary";

struct Cifar100Config {
  std::string root;
  bool coarse = false;
  bool augment = false;
  std::vector<double> mean{0.5071, 0.4865, 0.4409};  // of the training images, as is the deviation
  std::vector<double> deviation{0.2673, 0.2564, 0.2762};

  template <class V>
  void visit(V& v) {
    v("root", root,
      "folder of train.bin and test.bin, or of cifar-100-binary; empty: ${PHALANX_DATA}/cifar100, else data/cifar100");
    v("coarse", coarse, "the 20 classes of classes instead of all 100");
    v("augment", augment, "random crops with 4 pixels of padding, and random horizontal flips, of training images");
    v("mean", mean, "mean of red, green and blue (0 to 1), which is subtracted", config::between(0, 1));
    v("deviation", deviation, "standard deviation of red, green and blue, which divides", config::above(0));
  }
};

Splits load_cifar100(const Cifar100Config& config) {
  const DatasetFiles files{
      .dataset = "cifar100",
      .names = {"train.bin", "test.bin"},
      .how_to_get =
          "To get them: bazel run //tools:download -- cifar100, whose archive is to be unpacked there.\n"
          "To use them from elsewhere: set dataset.root to their folder, or PHALANX_DATA to the folder above it."};
  fs::path root = dataset_root(config.root, files.dataset);
  std::error_code unreadable;
  if (fs::is_directory(root / kFolderInArchive, unreadable)) root /= kFolderInArchive;
  const auto paths = find_files(files, root);
  const CifarRecords records{.dataset = "cifar100",
                             .title = "CIFAR-100",
                             .classes = config.coarse ? 20 : 100,
                             .labels = 2,
                             .label = config.coarse ? 0 : 1};
  const auto statistics = cifar_statistics(records, config.mean, config.deviation);
  const Augmentation augmentation{.padding = config.augment ? 4 : 0, .flip = config.augment};
  return {.train = read_cifar(std::span(paths).first(1), records, statistics, augmentation),
          .test = read_cifar(std::span(paths).last(1), records, statistics, {})};
}

const bool registered = Datasets::global().add<Cifar100Config>(
    "cifar100", "CIFAR-100: 60,000 images in 100 classes, 32 x 32 pixels", load_cifar100);

}  // namespace
}  // namespace phalanx

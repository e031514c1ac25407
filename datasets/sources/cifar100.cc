// SPDX-License-Identifier: Apache-2.0
// CIFAR-100 (Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images) in its binary version: two files
// of records, each with the coarse label (0 to 19), the fine label (0 to 99) and the pixels in the order of CIFAR-10.
#include <string>

#include "datasets/dataset.h"
#include "datasets/files/cifar_records.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

struct Cifar100Config {
  std::string root;
  bool coarse = false;
  CifarImages images{.mean = {0.5071, 0.4865, 0.4409}, .deviation = {0.2673, 0.2564, 0.2762}};

  template <class V>
  void visit(V& v) {
    v("root", root,
      "folder of train.bin and test.bin, or of cifar-100-binary or cifar-100-python; empty: ${PHALANX_DATA}/cifar100, "
      "else data/cifar100");
    v("coarse", coarse, "use the 20 superclasses instead of all 100 classes");
    images.visit(v);
  }
};

Splits load_cifar100(const Cifar100Config& config) {
  const DatasetFiles files{
      .dataset = "cifar100",
      .names = {"train.bin", "test.bin"},
      .how_to_get =
          "To get them: bazel run //tools:download -- cifar100, and unpack its archive there.\n" + kFromElsewhere};
  const CifarRecords records{.dataset = "cifar100",
                             .title = "CIFAR-100",
                             .folder_in_archive = "cifar-100-binary",
                             .python_folder = "cifar-100-python",
                             .python_names = {"train", "test"},
                             .python_labels = config.coarse ? "coarse_labels" : "fine_labels",
                             .classes = config.coarse ? 20 : 100,
                             .labels = 2,
                             .label = config.coarse ? 0 : 1};
  return load_cifar(files, config.root, records, config.images);
}

const bool cifar100_registered = Datasets::global().add<Cifar100Config>(
    "cifar100", "CIFAR-100: 60,000 images in 100 classes, 32 x 32 pixels", load_cifar100);

}  // namespace
}  // namespace phalanx

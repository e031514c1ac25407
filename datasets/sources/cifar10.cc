// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 (Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images) in its binary version: files of
// records without a header, each with
//
//     offset 0     label, 0 to 9
//     offset 1     3,072 bytes: 32 x 32 pixels of red, then of green, then of blue, each row by row
//
// The published files have 10,000 records each; any number is accepted. The Python version is read, too
// (files/cifar_records.h).
#include <string>

#include "datasets/dataset.h"
#include "datasets/files/cifar_records.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

CifarRecords records() {
  return {
      .dataset = "cifar10",
      .title = "CIFAR-10",
      .folder_in_archive = "cifar-10-batches-bin",
      .python_folder = "cifar-10-batches-py",
      .python_names = {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"},
      .python_labels = "labels",
      .classes = 10};
}

struct Cifar10Config {
  std::string root;
  CifarImages images{.mean = {0.4914, 0.4822, 0.4465}, .deviation = {0.2470, 0.2435, 0.2616}};

  template <class V>
  void visit(V& v) {
    v("root", root,
      "folder of the six files, or of cifar-10-batches-bin or cifar-10-batches-py; empty: ${PHALANX_DATA}/cifar10, "
      "else data/cifar10");
    images.visit(v);
  }
};

Splits load_cifar10(const Cifar10Config& config) {
  const DatasetFiles files{
      .dataset = "cifar10",
      .names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
                "test_batch.bin"},
      .how_to_get = "To get them: https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, unpacked there.\n" +
                    kFromElsewhere + "\nTo train without files: the dataset \"digits\" generates its own."};
  return load_cifar(files, config.root, records(), config.images);
}

const bool cifar10_registered = Datasets::global().add<Cifar10Config>(
    "cifar10", "CIFAR-10: 60,000 images in 10 classes, 32 x 32 pixels", load_cifar10);

}  // namespace
}  // namespace phalanx

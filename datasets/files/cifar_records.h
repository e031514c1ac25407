// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/images/memory_images.h"
#include "datasets/root.h"
#include "framework/base/config/visitor.h"

namespace phalanx {

/// The two versions of these datasets. The binary one has files of records without a header: some bytes of labels, then
/// 3,072 bytes, 32 x 32 pixels of red, of green and of blue, each row by row. The Python one has pickled dictionaries
/// of an array `data` [n, 3072] of the same bytes and of a list of labels, which are read without running them.
struct CifarRecords {
  const char* dataset;                    // "cifar10"
  const char* title;                      // "CIFAR-10"
  const char* folder_in_archive;          // which root may contain
  const char* python_folder;              // the same of the Python version
  std::vector<std::string> python_names;  // of its files, the test split last
  const char* python_labels;              // the key of the list that is taken
  std::int64_t classes = 0;               // labels lie in [0, classes)
  int labels = 1;                         // bytes of them in a record
  int label = 0;                          // the one that is taken
};

/// What is done to the images: fields of a config, which has a root besides.
struct CifarImages {
  bool augment = false;
  std::vector<TransformConfig> transforms{};
  std::vector<double> mean;  // of the training images, as is the deviation
  std::vector<double> deviation;

  template <class V>
  void visit(V& v) {
    v("augment", augment, "random crops with 4 pixels of padding, and random horizontal flips, of training images");
    v("transforms", transforms,
      "in place of augment, changes of training images, one after the other, that leave their size as it is");
    v("mean", mean, "mean of red, green and blue (0 to 1), which is subtracted", config::between(0, 1));
    v("deviation", deviation, "standard deviation of red, green and blue, which divides", config::above(0));
  }
};

/// Returns both splits: the last of `files` is the test split. `root` is as dataset_root() takes it. Reads the binary
/// version if its folder or its last file is there, otherwise the Python version if it is. Throws DataError, with file
/// and offset, for malformed records, and ConfigError unless there are three numbers of each statistic.
Splits load_cifar(const DatasetFiles& files, const std::string& root, const CifarRecords& records,
                  const CifarImages& images);

}  // namespace phalanx

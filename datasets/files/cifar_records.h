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

/// The two versions of these datasets. The binary version has files of records without a header: some label bytes, then
/// 3,072 bytes for 32 x 32 pixels, first all red values, then green, then blue, each row by row. The Python version has
/// pickled dictionaries with an array `data` [n, 3072] of the same bytes and a list of labels; they are parsed without
/// executing the pickle.
struct CifarRecords {
  const char* dataset;                    // "cifar10"
  const char* title;                      // "CIFAR-10"
  const char* folder_in_archive;          // folder that `root` may contain
  const char* python_folder;              // folder of the Python version that `root` may contain
  std::vector<std::string> python_names;  // files of the Python version, the test split last
  const char* python_labels;              // key of the list of labels
  std::int64_t classes = 0;               // labels are in [0, classes)
  int labels = 1;                         // number of label bytes in a record
  int label = 0;                          // index of the label byte that is used
};

/// The config fields that describe how images are processed; the config has a field `root` as well.
struct CifarImages {
  bool augment = false;
  std::vector<TransformConfig> transforms{};
  std::vector<double> mean;  // mean of the training images; so is the deviation
  std::vector<double> deviation;

  template <class V>
  void visit(V& v) {
    v("augment", augment, "random crops with 4 pixels of padding, and random horizontal flips, of training images");
    v("transforms", transforms,
      "in place of augment: changes of training images, one after the other, that keep their size");
    v("mean", mean, "mean of red, green and blue (0 to 1), which is subtracted", config::between(0, 1));
    v("deviation", deviation, "standard deviation of red, green and blue, by which they are divided", config::above(0));
  }
};

/// Returns both splits; the last of `files` is the test split. `root` is an argument of dataset_root(). Reads the
/// binary version if its folder or its last file exists, otherwise the Python version if that exists. Throws DataError,
/// with file and offset, for malformed records, and ConfigError unless each statistic has three numbers.
Splits load_cifar(const DatasetFiles& files, const std::string& root, const CifarRecords& records,
                  const CifarImages& images);

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/images/memory_images.h"
#include "datasets/root.h"

namespace phalanx {

/// Describes pairs of IDX files, one with images of the same size, the other with their classes.
struct IdxImages {
  std::int64_t classes = 10;
  std::int64_t first_label = 0;  // smallest label in the files, if classes are not numbered from 0
  bool transposed = false;       // images are stored column by column
};

/// The config fields that all such datasets have.
struct IdxPixels {
  std::vector<TransformConfig> transforms{};
  double mean;  // mean of the training images (0 to 1); so is the deviation
  double deviation;

  template <class V>
  void visit(V& v) {
    v("transforms", transforms, "changes of training images, one after the other, that keep their size");
    v("mean", mean, "mean of the pixels (0 to 1), which is subtracted", config::between(0, 1));
    v("deviation", deviation, "standard deviation of the pixels, by which they are divided", config::above(0));
  }
};

/// Returns the names of such files: "train-images-idx3-ubyte", ..., "t10k-labels-idx1-ubyte".
std::vector<std::string> idx_image_names(const std::string& train, const std::string& test);

/// Returns both splits. `files` has the names from idx_image_names(); the last `-` of a name may be a `.` in the
/// folder. `root` is an argument of dataset_root(). Throws DataError, with file and offset, for files of another format
/// and for splits with images of different sizes.
Splits load_idx_images(const DatasetFiles& files, const std::string& root, const IdxImages& expected,
                       const IdxPixels& pixels);

}  // namespace phalanx

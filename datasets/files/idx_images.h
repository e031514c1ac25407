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
  std::int64_t first_label = 0;  // of the files, where classes are not numbered from 0
  bool transposed = false;       // columns are stored as rows
};

/// Fields that all such datasets have.
struct IdxPixels {
  std::vector<TransformConfig> transforms{};
  double mean;  // of the training images (0 to 1), as is the deviation
  double deviation;

  template <class V>
  void visit(V& v) {
    v("transforms", transforms, "changes of training images, one after the other, that leave their size as it is");
    v("mean", mean, "mean of the pixels (0 to 1), which is subtracted", config::between(0, 1));
    v("deviation", deviation, "standard deviation of the pixels, which divides", config::above(0));
  }
};

/// The names of such files: "train-images-idx3-ubyte", ..., "t10k-labels-idx1-ubyte".
std::vector<std::string> idx_image_names(const std::string& train, const std::string& test);

/// Returns both splits. `files` has idx_image_names(), of which the last `-` may be a `.` in the folder; `root` is as
/// dataset_root() takes it. Throws DataError, with file and offset, for what are no such files, and for splits with
/// images of different sizes.
Splits load_idx_images(const DatasetFiles& files, const std::string& root, const IdxImages& expected,
                       const IdxPixels& pixels);

}  // namespace phalanx

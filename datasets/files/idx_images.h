#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/images/memory_images.h"
#include "datasets/root.h"

namespace phalanx {

/// What pairs of IDX files have: images of 28 x 28 pixels, and their classes.
struct IdxImages {
  std::int64_t classes = 10;
  std::int64_t first_label = 0;  // of the files, where classes are not numbered from 0
  bool transposed = false;       // columns are stored as rows
  ChannelStatistics statistics;
};

inline constexpr const char* kTransformsHelp =
    "changes of training images, one after the other, that leave their size as it is";

/// The names of such files: "train-images-idx3-ubyte", ..., "t10k-labels-idx1-ubyte".
std::vector<std::string> idx_image_names(const std::string& train, const std::string& test);

/// Both splits. `files` has idx_image_names(); `root` is as dataset_root() takes it. Throws DataError, with file and
/// offset, for what are no such files.
Splits load_idx_images(const DatasetFiles& files, const std::string& root, const IdxImages& expected,
                       const std::vector<TransformConfig>& transforms);

}  // namespace phalanx

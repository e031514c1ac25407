#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "datasets/dataset.h"
#include "datasets/image_dataset.h"

namespace phalanx {

/// What a pair of IDX files has: images of 28 x 28 pixels, and their classes.
struct IdxImages {
  std::int64_t classes = 10;
  std::int64_t first_label = 0;  // of the files, where classes are not numbered from 0
  bool transposed = false;       // columns are stored as rows
  ChannelStatistics statistics;
};

/// One split. Throws DataError, with file and offset, for what is not such a pair.
std::shared_ptr<const Dataset> read_idx_images(const std::filesystem::path& images_file,
                                               const std::filesystem::path& labels_file, const IdxImages& expected);

}  // namespace phalanx

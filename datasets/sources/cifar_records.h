#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "datasets/augmentation.h"
#include "datasets/dataset.h"
#include "datasets/image_dataset.h"

namespace phalanx {

/// Files of records without a header: some bytes of labels, then 3,072 bytes, 32 x 32 pixels of red, of green and of
/// blue, each row by row.
struct CifarRecords {
  const char* dataset;       // "cifar10"
  const char* title;         // "CIFAR-10"
  std::int64_t classes = 0;  // labels lie in [0, classes)
  int labels = 1;            // bytes of them in a record
  int label = 0;             // the one that is taken
};

/// One number of each for each channel. Throws ConfigError where there are fewer or more.
std::vector<ChannelStatistics> cifar_statistics(const CifarRecords& records, const std::vector<double>& mean,
                                                const std::vector<double>& deviation);

/// One split, of all `files`. Throws DataError, with file and offset, for what are no such records.
std::shared_ptr<const Dataset> read_cifar(std::span<const std::filesystem::path> files, const CifarRecords& records,
                                          std::span<const ChannelStatistics> statistics,
                                          const Augmentation& augmentation);

}  // namespace phalanx

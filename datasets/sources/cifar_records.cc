#include "datasets/sources/cifar_records.h"

#include <string>
#include <utility>

#include "datasets/malformed.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kChannels = 3, kSide = 32, kPixels = kChannels * kSide * kSide;

// Adds the records of `file` to `images`.
void read_records(const fs::path& file, const CifarRecords& format, Images& images) {
  const std::string bytes = read_file(file.string());  // at most some 150 MB
  const auto size = static_cast<std::int64_t>(bytes.size());
  const std::int64_t length = format.labels + kPixels;
  const std::int64_t records = size / length;
  if (size == 0 || size % length != 0) {
    throw_malformed(file, size,
                    "the file ends within record " + std::to_string(records) + "; a record has " +
                        std::to_string(length) +
                        " bytes. Unpack it again, from a complete download of the binary version");
  }
  for (std::int64_t offset = 0; offset < size; offset += length) {
    const auto* record = reinterpret_cast<const std::uint8_t*>(bytes.data()) + offset;
    const auto label = record[format.label];
    if (label >= format.classes) {
      throw_malformed(file, offset + format.label,
                      "label " + std::to_string(label) + ", expected 0 to " + std::to_string(format.classes - 1) +
                          ". This is not the binary version of " + format.title + ", or it is damaged");
    }
    images.labels.push_back(label);
    images.pixels.insert(images.pixels.end(), record + format.labels, record + length);
  }
}

}  // namespace

std::vector<ChannelStatistics> cifar_statistics(const CifarRecords& records, const std::vector<double>& mean,
                                                const std::vector<double>& deviation) {
  if (mean.size() != kChannels || deviation.size() != kChannels) {
    throw ConfigError(std::string("dataset ") + records.dataset +
                      ": mean and deviation need one number for each of 3 channels, but have " +
                      std::to_string(mean.size()) + " and " + std::to_string(deviation.size()));
  }
  std::vector<ChannelStatistics> statistics;
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    statistics.push_back(
        {.mean = static_cast<float>(mean[channel]), .deviation = static_cast<float>(deviation[channel])});
  }
  return statistics;
}

std::shared_ptr<const Dataset> read_cifar(std::span<const fs::path> files, const CifarRecords& records,
                                          std::span<const ChannelStatistics> statistics,
                                          const Augmentation& augmentation) {
  Images images;
  for (const auto& file : files) read_records(file, records, images);
  const auto spec = classification_samples({kChannels, kSide, kSide}, records.classes);
  return std::make_shared<ImageDataset>(std::move(images), spec, statistics, augmentation);
}

}  // namespace phalanx

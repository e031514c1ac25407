#include "datasets/files/cifar_records.h"

#include <filesystem>
#include <span>
#include <string>
#include <system_error>
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

std::vector<ChannelStatistics> statistics_of(const CifarImages& images, const char* dataset) {
  const auto &mean = images.mean, &deviation = images.deviation;
  if (mean.size() != kChannels || deviation.size() != kChannels) {
    throw ConfigError(std::string("dataset ") + dataset +
                      ": mean and deviation need one number for each of 3 channels, but have " +
                      std::to_string(mean.size()) + " and " + std::to_string(deviation.size()));
  }
  return channel_statistics(mean, deviation);
}

}  // namespace

Splits load_cifar(const DatasetFiles& files, const std::string& root, const CifarRecords& records,
                  const CifarImages& images) {
  fs::path folder = dataset_root(root, files.dataset);
  std::error_code unreadable;
  if (fs::is_directory(folder / records.folder_in_archive, unreadable)) folder /= records.folder_in_archive;
  const auto paths = find_files(files, folder);
  const auto statistics = statistics_of(images, records.dataset);
  const auto read = [&](std::span<const fs::path> of_split, const MemoryImagesOptions& options) {
    Images all;
    for (const auto& file : of_split) read_records(file, records, all);
    return images_in_memory(std::move(all), classification_samples({kChannels, kSide, kSide}, records.classes),
                            options);
  };
  const Augmentation augmentation{.padding = images.augment ? 4 : 0, .flip = images.augment};
  return {.train = read(std::span(paths).first(paths.size() - 1),
                        {.statistics = statistics, .augmentation = augmentation, .transforms = images.transforms}),
          .test = read(std::span(paths).last(1), {.statistics = statistics})};
}

}  // namespace phalanx

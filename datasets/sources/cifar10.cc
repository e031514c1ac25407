// CIFAR-10 (Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images) in its binary version: files of
// records without a header,
//
//     offset 0     label, 0 to 9
//     offset 1     3,072 bytes: 32 x 32 pixels of red, then of green, then of blue, each row by row
//
// 10,000 a file as it is published; any number will do. Training may crop and flip (datasets/augmentation.h).
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datasets/augmentation.h"
#include "datasets/dataset.h"
#include "datasets/image_dataset.h"
#include "datasets/malformed.h"
#include "datasets/root.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kChannels = 3, kSide = 32, kClasses = 10;
constexpr std::int64_t kRecord = 1 + kChannels * kSide * kSide;  // bytes
constexpr const char* kFolderInArchive = "cifar-10-batches-bin";

struct Cifar10Config {
  std::string root;
  bool augment = false;
  std::vector<double> mean{0.4914, 0.4822, 0.4465};  // of the training images, as is the deviation
  std::vector<double> deviation{0.2470, 0.2435, 0.2616};

  template <class V>
  void visit(V& v) {
    v("root", root,
      "folder of the six files, or of cifar-10-batches-bin; empty: ${PHALANX_DATA}/cifar10, else data/cifar10");
    v("augment", augment, "random crops with 4 pixels of padding, and random horizontal flips, of training images");
    v("mean", mean, "mean of red, green and blue (0 to 1), which is subtracted", config::between(0, 1));
    v("deviation", deviation, "standard deviation of red, green and blue, which divides", config::above(0));
  }
};

// Adds the records of `file` to `images`.
void read_records(const fs::path& file, Images& images) {
  const std::string bytes = read_file(file.string());  // at most some 30 MB
  const auto size = static_cast<std::int64_t>(bytes.size());
  const std::int64_t records = size / kRecord;
  if (size == 0 || size % kRecord != 0) {
    throw_malformed(file, size,
                    "the file ends within record " + std::to_string(records) +
                        "; a record has 3073 bytes. Unpack it again, from a complete download of the binary version");
  }
  for (std::int64_t offset = 0; offset < size; offset += kRecord) {
    const auto record = reinterpret_cast<const std::uint8_t*>(bytes.data()) + offset;
    if (record[0] >= kClasses) {
      throw_malformed(file, offset,
                      "label " + std::to_string(record[0]) +
                          ", expected 0 to 9. This is not the binary version of CIFAR-10, or it is damaged");
    }
    images.labels.push_back(record[0]);
    images.pixels.insert(images.pixels.end(), record + 1, record + kRecord);
  }
}

std::vector<ChannelStatistics> statistics_of(const Cifar10Config& config) {
  if (config.mean.size() != kChannels || config.deviation.size() != kChannels) {
    throw ConfigError("dataset cifar10: mean and deviation need one number for each of 3 channels, but have " +
                      std::to_string(config.mean.size()) + " and " + std::to_string(config.deviation.size()));
  }
  std::vector<ChannelStatistics> statistics;
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    statistics.push_back(
        {.mean = static_cast<float>(config.mean[channel]), .deviation = static_cast<float>(config.deviation[channel])});
  }
  return statistics;
}

std::shared_ptr<const Dataset> read_split(std::span<const fs::path> files,
                                          const std::vector<ChannelStatistics>& statistics,
                                          const Augmentation& augmentation) {
  Images images;
  for (const auto& file : files) read_records(file, images);
  const auto spec = classification_samples({kChannels, kSide, kSide}, kClasses);
  return std::make_shared<ImageDataset>(std::move(images), spec, statistics, augmentation);
}

Splits load_cifar10(const Cifar10Config& config) {
  const DatasetFiles files{
      .dataset = "cifar10",
      .names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
                "test_batch.bin"},
      .how_to_get =
          "To get them: https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, unpacked there.\n"
          "To use them from elsewhere: set dataset.root to their folder, or PHALANX_DATA to the folder above it.\n"
          "To train without files: the dataset \"digits\" generates its own."};
  fs::path root = dataset_root(config.root, files.dataset);
  std::error_code unreadable;
  if (fs::is_directory(root / kFolderInArchive, unreadable)) root /= kFolderInArchive;
  const auto paths = find_files(files, root);
  const auto statistics = statistics_of(config);
  const Augmentation augmentation{.padding = config.augment ? 4 : 0, .flip = config.augment};
  return {.train = read_split(std::span(paths).first(5), statistics, augmentation),
          .test = read_split(std::span(paths).last(1), statistics, {})};
}

const bool registered = Datasets::global().add<Cifar10Config>(
    "cifar10", "CIFAR-10: 60,000 images in 10 classes, 32 x 32 pixels", load_cifar10);

}  // namespace
}  // namespace phalanx

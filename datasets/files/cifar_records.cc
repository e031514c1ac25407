// SPDX-License-Identifier: Apache-2.0
#include "datasets/files/cifar_records.h"

#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "datasets/malformed.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/unpickler.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kChannels = 3, kSide = 32, kPixels = kChannels * kSide * kSide;

// Appends the records of `file` to `images`.
void read_records(const fs::path& file, const CifarRecords& format, Images& images) {
  const std::string bytes = read_file(file.string());  // at most about 150 MB
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

// A pickled dictionary of the Python version.
class Pickle {
 public:
  explicit Pickle(const fs::path& file)
      : file_(file), bytes_(read_file(file.string())), pickle_(unpickle(file.string(), bytes_)) {
    if (pickle_.root->kind != PickleNode::kDict) refuse("is not a dictionary");
  }

  // Returns the bytes of an array [rows, columns] of unsigned bytes.
  const std::string& array(std::string_view key, std::int64_t columns) const {
    const auto& object = value_of(key);
    const PickleNode* const state = object.items.size() == 1 ? object.items[0] : nullptr;
    // The state of an array: version, shape, type, true for column-major order, bytes.
    const bool is_array = object.kind == PickleNode::kOther && object.text.ends_with("._reconstruct") &&
                          state != nullptr && state->kind == PickleNode::kList && state->items.size() == 5;
    if (!is_array) refuse(quoted(key) + " is not a NumPy array");
    const auto &shape = *state->items[1], &bytes = *state->items[4];
    const bool is_right = shape.items.size() == 2 && shape.items[1]->integer == columns &&
                          state->items[3]->integer == 0 && bytes.kind == PickleNode::kText &&
                          std::ssize(bytes.text) % columns == 0 &&
                          shape.items[0]->integer == std::ssize(bytes.text) / columns;
    if (!is_right) refuse(quoted(key) + " is not an array of rows of " + std::to_string(columns) + " bytes");
    return bytes.text;
  }

  std::vector<std::int64_t> numbers(std::string_view key) const {
    const auto& list = value_of(key);
    std::vector<std::int64_t> all;
    for (const auto* item : list.items) {
      if (list.kind != PickleNode::kList || item->kind != PickleNode::kInt)
        refuse(quoted(key) + " is not a list of numbers");
      all.push_back(item->integer);
    }
    return all;
  }

  [[noreturn]] void refuse(const std::string& why) const { throw DataError(file_.string() + ": " + why); }

 private:
  static std::string quoted(std::string_view key) { return "\"" + std::string(key) + "\""; }

  const PickleNode& value_of(std::string_view key) const {
    const auto& items = pickle_.root->items;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      if (items[i]->kind == PickleNode::kText && items[i]->text == key) return *items[i + 1];
    }
    refuse("the dictionary has no " + quoted(key));
  }

  fs::path file_;
  std::string bytes_;
  Unpickled pickle_;
};

// Appends the images of `file` to `images`.
void read_pickle(const fs::path& file, const CifarRecords& format, Images& images) {
  const Pickle pickle(file);
  const auto& pixels = pickle.array("data", kPixels);
  const auto labels = pickle.numbers(format.python_labels);
  if (std::ssize(labels) * kPixels != std::ssize(pixels)) {
    pickle.refuse("has " + std::to_string(labels.size()) + " labels for " +
                  std::to_string(std::ssize(pixels) / kPixels) + " images");
  }
  for (const auto label : labels) {
    if (label >= 0 && label < format.classes) continue;
    pickle.refuse("label " + std::to_string(label) + ", expected 0 to " + std::to_string(format.classes - 1));
  }
  images.labels.insert(images.labels.end(), labels.begin(), labels.end());
  images.pixels.insert(images.pixels.end(), pixels.begin(), pixels.end());
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

// The version of the dataset that a folder has.
struct Version {
  fs::path folder;
  bool is_python = false;
};

Version find_version(const fs::path& root, const DatasetFiles& files, const CifarRecords& records) {
  std::error_code unreadable;
  const auto exists = [&](const fs::path& path) { return fs::exists(path, unreadable); };
  if (exists(root / records.folder_in_archive)) return {root / records.folder_in_archive};
  if (exists(root / files.names.back())) return {root};
  if (exists(root / records.python_folder)) return {root / records.python_folder, true};
  return {root, exists(root / records.python_names.back())};
}

}  // namespace

Splits load_cifar(const DatasetFiles& files, const std::string& root, const CifarRecords& records,
                  const CifarImages& images) {
  const auto [folder, is_python] = find_version(dataset_root(root, files.dataset), files, records);
  auto wanted = files;
  if (is_python) wanted.names = records.python_names;
  const auto paths = find_files(wanted, folder);
  const auto statistics = statistics_of(images, records.dataset);
  const auto read = [&, python = is_python](std::span<const fs::path> of_split, const MemoryImagesOptions& options) {
    Images all;
    for (const auto& file : of_split) {
      python ? read_pickle(file, records, all) : read_records(file, records, all);
    }
    return images_in_memory(std::move(all), classification_samples({kChannels, kSide, kSide}, records.classes),
                            options);
  };
  const Augmentation augmentation{.padding = images.augment ? 4 : 0, .flip = images.augment};
  return {.train = read(std::span(paths).first(paths.size() - 1),
                        {.statistics = statistics, .augmentation = augmentation, .transforms = images.transforms}),
          .test = read(std::span(paths).last(1), {.statistics = statistics})};
}

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
// Images in tar archives, named as in WebDataset. The files of a sample have the same name and different suffixes:
// 17.jpg (or .jpeg, .png, .webp) and 17.cls with the number of its class in decimal digits, or 17.json with an object
// that has the number as "label", "cls" or "class". Members whose names begin with a dot are ignored. Archives are not
// compressed. Their headers are indexed when they are opened; gather() reads the content directly from the archive.
#include <fcntl.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/images/decode.h"
#include "datasets/images/image_config.h"
#include "datasets/images/tar_index.h"
#include "datasets/malformed.h"
#include "datasets/root.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/json.h"
#include "framework/base/read_at.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

struct ImageShardsConfig : ImageConfig {
  std::string root;
  std::vector<std::string> train{"train-*.tar"};
  std::vector<std::string> validation;
  std::vector<std::string> test;
  std::int64_t classes = 1000;

  template <class V>
  void visit(V& v) {
    v("root", root, "folder of the archives; empty: ${PHALANX_DATA}/image_shards, else data/image_shards");
    v("train", train, "archives to train on; * stands for any part of a name");
    v("validation", validation,
      "archives to validate on; empty: val-*.tar, if there are any in addition to those to test on");
    v("test", test, "archives to test on; empty: test-*.tar, or val-*.tar if there are none");
    v("classes", classes, "number of classes", config::at_least(1));
    ImageConfig::visit(v);
  }
};

struct Sample {
  std::size_t archive = 0;
  std::int64_t offset = 0, size = 0, label = -1;
  std::string name;
  std::optional<TarEntry> json{};
};

std::string read_part(const fs::path& file, int descriptor, std::int64_t offset, std::int64_t size) {
  std::string bytes(static_cast<std::size_t>(size), '\0');
  const auto got = read_at(descriptor, bytes.data(), bytes.size(), offset);
  if (got < 0) throw_malformed(file, offset, std::generic_category().message(errno));
  if (got < size) throw_malformed(file, offset + got, "the file ends early");
  return bytes;
}

class ShardsSource final : public ImageSource {
 public:
  ShardsSource(std::vector<fs::path> archives, std::int64_t classes, DecodeOptions decoding)
      : archives_(std::move(archives)), decoding_(decoding) {
    for (std::size_t i = 0; i < archives_.size(); ++i) {
      descriptors_.emplace_back(::open(archives_[i].c_str(), O_RDONLY | O_CLOEXEC));
      if (descriptors_.back().get() < 0)
        throw DataError(archives_[i].string() + ": " + std::generic_category().message(errno));
      add(i, classes);
    }
  }

  std::int64_t size() const override { return std::ssize(samples_); }
  std::int64_t label(std::int64_t index) const override { return samples_[static_cast<std::size_t>(index)].label; }
  at::Tensor image(std::int64_t index) const override {
    const auto& sample = samples_[static_cast<std::size_t>(index)];
    return decode_image(
        read_part(archives_[sample.archive], descriptors_[sample.archive].get(), sample.offset, sample.size), decoding_,
        name(index));
  }
  std::string name(std::int64_t index) const override {
    const auto& sample = samples_[static_cast<std::size_t>(index)];
    return archives_[sample.archive].string() + ": " + sample.name;
  }

 private:
  void add(std::size_t archive, std::int64_t classes) {
    const auto& path = archives_[archive];
    const auto before = samples_.size();
    Sample sample;
    std::set<std::string> names;
    const auto finish = [&](std::int64_t offset) {
      if (sample.name.empty()) return;
      if (sample.label < 0 && sample.json) sample.label = read_json(path, archive, *sample.json, classes);
      if (sample.size == 0 || sample.label < 0) {
        throw_malformed(path, offset,
                        "sample \"" + sample.name + "\" has no " +
                            (sample.size == 0 ? "image (.jpg, .jpeg, .png or .webp)"
                                              : "class (.cls, or .json with a whole number as \"label\")"));
      }
      samples_.push_back(std::move(sample));
    };
    for (const auto& entry : index_tar(path)) {
      const auto folder = entry.name.rfind('/');
      const auto begin = folder == std::string::npos ? 0 : folder + 1;
      const auto dot = entry.name.find('.', begin);
      if (dot == std::string::npos || dot == begin) continue;
      const auto name = entry.name.substr(0, dot);
      auto suffix = entry.name.substr(dot);
      std::ranges::transform(suffix, suffix.begin(), [](unsigned char letter) { return std::tolower(letter); });
      if (name != sample.name) {
        finish(entry.offset);
        sample = {.archive = archive, .name = name};
        if (!names.insert(name).second) throw_malformed(path, entry.offset, "has a second sample \"" + name + '"');
      }
      const bool is_image = is_decoded(suffix), is_class = suffix == ".cls";
      if ((is_image && sample.size > 0) || (is_class && sample.label >= 0)) {
        throw_malformed(path, entry.offset,
                        "sample \"" + name + "\" has a second " + (is_image ? "image" : "class") + ": " + entry.name);
      }
      if (is_image) {
        sample.offset = entry.offset;
        sample.size = entry.size;
      } else if (is_class) {
        sample.label = read_class(path, archive, entry, classes);
      } else if (suffix == ".json") {
        sample.json = entry;
      }
    }
    finish(0);
    if (samples_.size() == before) throw DataError(path.string() + ": the archive has no samples");
  }

  // Returns the class in the file, or -1 if it has none.
  std::int64_t read_json(const fs::path& path, std::size_t archive, const TarEntry& entry, std::int64_t classes) {
    const auto where = path.string() + ": " + entry.name;
    const auto json = parse_json(read_part(path, descriptors_[archive].get(), entry.offset, entry.size), where);
    for (const char* key : {"label", "cls", "class"}) {
      if (!json.has(key)) continue;
      const auto label = json.get<std::int64_t>(key);
      if (label >= 0 && label < classes) return label;
      throw_malformed(path, entry.offset, no_class(entry.name + ": \"" + key + '"', std::to_string(label), classes));
    }
    return -1;
  }

  static std::string no_class(const std::string& what, const std::string& value, std::int64_t classes) {
    return what + " is " + value + ", which is not the number of a class; dataset.classes: " + std::to_string(classes) +
           " classes";
  }

  std::int64_t read_class(const fs::path& path, std::size_t archive, const TarEntry& entry, std::int64_t classes) {
    constexpr std::int64_t kLongest = 32;
    const auto text =
        read_part(path, descriptors_[archive].get(), entry.offset, std::min<std::int64_t>(entry.size, kLongest));
    const auto last = text.find_last_not_of(" \t\r\n");
    const auto* const digits_end = text.data() + (last == std::string::npos ? 0 : last + 1);
    std::int64_t label = -1;
    const auto [end, error] = std::from_chars(text.data(), digits_end, label);
    const bool whole = error == std::errc() && end == digits_end && entry.size <= kLongest;
    if (whole && label >= 0 && label < classes) return label;
    throw_malformed(path, entry.offset, no_class(entry.name, '"' + text.substr(0, text.find('\n')) + '"', classes));
  }

  std::vector<fs::path> archives_;
  DecodeOptions decoding_;
  std::vector<Descriptor> descriptors_;
  std::vector<Sample> samples_;
};

Splits load_image_shards(const ImageShardsConfig& config) {
  const fs::path root = dataset_root(config.root, "image_shards");
  const auto split = [&](const char* key, const std::vector<std::string>& patterns, bool training) {
    auto source = std::make_shared<ShardsSource>(files_like(patterns, root, std::string("dataset.") + key),
                                                 config.classes, config.decoding());
    return config.samples(std::move(source), config.classes, training);
  };
  const std::string val = "val-*.tar", test = "test-*.tar";
  const bool tests_on_val = config.test.empty() && !has_file_like(test, root) && has_file_like(val, root);
  const auto of_test = config.test.empty() ? std::vector{tests_on_val ? val : test} : config.test;
  auto of_validation = config.validation;
  if (of_validation.empty() && !tests_on_val && has_file_like(val, root)) of_validation = {val};
  Splits splits{
      .train = split("train", config.train, true), .validation = nullptr, .test = split("test", of_test, false)};
  if (!of_validation.empty()) splits.validation = split("validation", of_validation, false);
  return splits;
}

const bool image_shards_registered = Datasets::global().add<ImageShardsConfig>(
    "image_shards", "JPEG, PNG and WebP images in tar archives (WebDataset)", load_image_shards);

}  // namespace
}  // namespace phalanx

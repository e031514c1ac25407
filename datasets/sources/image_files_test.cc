// SPDX-License-Identifier: Apache-2.0
// Tests the datasets of encoded images: image_folder and image_shards.
#include "datasets/testing/image_files.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/images/encode.h"
#include "datasets/testing/idx_files.h"
#include "datasets/testing/splits.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using testing::fresh_folder;
using ::testing::HasSubstr;
using testing::jpeg_bytes;
using testing::smooth_image;
using ::testing::ThrowsMessage;

namespace fs = std::filesystem;

// A lossless WebP of one pixel.
constexpr const char* kWebP = "524946461e000000574542505650384c110000002f0000000007508a2ad4a3ff8188e87f0000";

Batch gather(const Dataset& split, const std::vector<std::int64_t>& indices) {
  Batch batch;
  split.gather(indices, 1, batch);
  return batch;
}

std::vector<std::int64_t> labels(const Dataset& split) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < split.size(); ++i) all.push_back(gather(split, {i}).targets[0].item<std::int64_t>());
  return all;
}

void write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  write_atomically(path, bytes);
}

class ImageFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* split : {"train", "test", "val"}) {
      write(root_ / split / "cat" / "1.jpg", jpeg_bytes(smooth_image(3, 40, 30)));
      write(root_ / split / "cat" / "2.JPEG", jpeg_bytes(smooth_image(1, 30, 50, 1)));
      write(root_ / split / "ant" / "a.png", encode_png(smooth_image(3, 16, 16, 2)));
      write(root_ / split / "ant" / "notes.txt", "not an image");
    }
  }
  std::string section(const std::string& more = "") const {
    return "{name: image_folder, root: " + root_.string() + ", side: 16" + more + "}";
  }
  fs::path root_ = fresh_folder("image_folder");
};

TEST_F(ImageFolder, HasAClassForEachFolderOfTrain) {
  const Splits splits = testing::load_splits(section());
  ASSERT_NE(splits.validation, nullptr);
  for (const auto& split : {splits.train, splits.validation, splits.test}) {
    EXPECT_EQ(labels(*split), (std::vector<std::int64_t>{0, 1, 1}));
    EXPECT_EQ(split->spec().targets[0].classes, 2);
    EXPECT_EQ(gather(*split, {2, 0}).inputs[0].sizes(), (at::IntArrayRef{2, 3, 16, 16}));
  }
}

TEST_F(ImageFolder, IgnoresEntriesWhoseTypeIsUnknown) {
  fs::create_directory_symlink(root_ / "train" / "loop", root_ / "train" / "loop");
  EXPECT_EQ(labels(*testing::load_splits(section()).train), (std::vector<std::int64_t>{0, 1, 1}));
}

TEST_F(ImageFolder, ReadsTheFilesThemselves) {
  const Splits splits = testing::load_splits(
      section(", mean: [0], deviation: [1], test_transforms: [{transform: {name: center_crop, size: 16}}]"));
  const at::Tensor pixels = (gather(*splits.test, {0}).inputs[0][0] * 255).round().to(at::kByte);
  EXPECT_TRUE(at::equal(pixels, smooth_image(3, 16, 16, 2)));
}

TEST_F(ImageFolder, MayBeWithoutColor) {
  EXPECT_EQ(gather(*testing::load_splits(section(", color: false")).train, {0, 1}).inputs[0].sizes(),
            (at::IntArrayRef{2, 1, 16, 16}));
}

TEST_F(ImageFolder, TestsOnValWhereThereIsNoTest) {
  fs::remove_all(root_ / "test");
  const Splits splits = testing::load_splits(section());
  EXPECT_EQ(splits.validation, nullptr);
  EXPECT_EQ(splits.test->size(), 3);
}

TEST_F(ImageFolder, ReadsNestedFoldersAndNoHiddenOnes) {
  write(root_ / "train" / "cat" / "kittens" / "young" / "3.webp", testing::from_hex(kWebP));
  write(root_ / "train" / ".cache" / "4.jpg", "junk");
  write(root_ / "train" / "cat" / ".thumbnails" / "5.jpg", "junk");
  write(root_ / "train" / "cat" / "._1.jpg", "junk");
  const Splits splits = testing::load_splits(section());
  EXPECT_EQ(labels(*splits.train), (std::vector<std::int64_t>{0, 1, 1, 1}));
  EXPECT_EQ(splits.train->spec().targets[0].classes, 2);
}

TEST_F(ImageFolder, WarnsOfFormatsThatAreNotReadAndOfEmptyClasses) {
  write(root_ / "train" / "dog" / "1.gif", "GIF89a");
  write(root_ / "train" / "dog" / "2.gif", "GIF89a");
  write(root_ / "train" / "cat" / "3.BMP", "BM");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(testing::load_splits(section()).train->spec().targets[0].classes, 3);
  const auto log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("train: images of these formats are skipped: 1 .BMP, 2 .gif"));
  EXPECT_THAT(log, HasSubstr("train: 1 of 3 classes have no images: dog"));
}

TEST_F(ImageFolder, ValidatesOnFoldersOfOtherNames) {
  for (const char* name : {"valid", "validation"}) {
    fs::remove_all(root_ / "valid");
    fs::rename(root_ / "val", root_ / name);
    EXPECT_EQ(testing::load_splits(section()).validation->size(), 3) << name;
    fs::rename(root_ / name, root_ / "val");
  }
}

// Tests a root without a folder for testing, and one without a folder `train`.
TEST_F(ImageFolder, TestsOnAShareOfTheTrainingImages) {
  for (int i = 0; i < 20; ++i) {
    write(root_ / "train" / "cat" / ("more" + std::to_string(i) + ".png"), encode_png(smooth_image(3, 8, 8, i)));
  }
  EXPECT_THAT([&] { testing::load_splits(section(", test_share: 0.25")); },
              ThrowsMessage<ConfigError>(HasSubstr("dataset.test_share: ")));
  fs::remove_all(root_ / "test");
  fs::remove_all(root_ / "val");
  const Splits splits = testing::load_splits(section(", test_share: 0.25"));
  EXPECT_EQ(splits.train->size(), 17) << "the only ant, and 16 of 22 cats";
  EXPECT_EQ(labels(*splits.test), (std::vector<std::int64_t>(6, 1)));
  EXPECT_EQ(testing::load_splits(section(", test_share: 0.001")).test->size(), 1);
  fs::rename(root_ / "train", root_ / "images");
  root_ /= "images";
  EXPECT_EQ(labels(*testing::load_splits(section(", test_share: 0.25")).test), (std::vector<std::int64_t>(6, 1)));
}

TEST_F(ImageFolder, MayBeLaidOutAsTinyImageNet) {
  fs::remove_all(root_ / "val");
  fs::remove_all(root_ / "test");
  write(root_ / "test" / "images" / "test_0.JPEG", jpeg_bytes(smooth_image(3, 8, 8)));
  write(root_ / "train" / "cat" / "images" / "cat_0.JPEG", jpeg_bytes(smooth_image(3, 8, 8)));
  for (const char* name : {"val_0.JPEG", "val_1.JPEG"}) {
    write(root_ / "val" / "images" / name, jpeg_bytes(smooth_image(3, 8, 8)));
  }
  write(root_ / "val" / "val_annotations.txt", "val_0.JPEG\tcat\t0\t0\t7\t7\r\nval_1.JPEG\tant\n");
  const Splits splits = testing::load_splits(section());
  EXPECT_EQ(labels(*splits.train), (std::vector<std::int64_t>{0, 1, 1, 1}));
  EXPECT_EQ(splits.validation, nullptr);
  EXPECT_EQ(labels(*splits.test), (std::vector<std::int64_t>{0, 1}));
  write(root_ / "val" / "val_annotations.txt", "val_0.JPEG\tdog\n");
  EXPECT_THAT([&] { testing::load_splits(section()); },
              ThrowsMessage<DataError>(HasSubstr("val_annotations.txt:1: expected a file")));
}

TEST_F(ImageFolder, SaysWhatIsMissing) {
  const auto refused = [&](const std::string& why) {
    EXPECT_THAT([&] { testing::load_splits(section()); },
                ThrowsMessage<DataError>(AllOf(HasSubstr(root_.string()), HasSubstr(why))));
  };
  fs::create_directories(root_ / "test" / "dog");
  refused("test/dog: is not a class of the training images, which have 2 folders");
  fs::remove_all(root_ / "test");
  fs::create_directories(root_ / "test");
  refused("test: has no images");
  fs::remove_all(root_ / "test");
  fs::remove_all(root_ / "val");
  refused("has no images to test on");
  fs::remove_all(root_ / "train");
  refused("has no folders; there must be one for each class");
}

TEST_F(ImageFolder, NamesTheFileThatIsDamaged) {
  const auto bytes = jpeg_bytes(smooth_image(3, 40, 30));
  write(root_ / "train" / "cat" / "1.jpg", bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT([&] { gather(*testing::load_splits(section()).train, {1}); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("train/cat/1.jpg: byte"), HasSubstr("a damaged JPEG"))));
  const Splits splits = testing::load_splits(section(", skip_corrupt: 1"));
  EXPECT_EQ(gather(*splits.train, {1}).targets[0].item<int>(), 1) << "2.JPEG in its place";
}

using Files = std::vector<std::pair<std::string, std::string>>;

class ImageShards : public ::testing::Test {
 protected:
  void SetUp() override {
    write(root_ / "train-0.tar", testing::tar_bytes({{"a/1.jpg", jpeg_bytes(smooth_image(3, 30, 20))},
                                                     {"a/1.cls", "2\n"},
                                                     {"a/2.cls", "0"},
                                                     {"a/2.png", encode_png(smooth_image(3, 16, 16, 1))}}));
    write(root_ / "train-1.tar", shard(1));
    write(root_ / "test-0.tar", shard(0));
  }
  static std::string shard(int label) {
    return testing::tar_bytes(
        Files{{"7.png", encode_png(smooth_image(3, 16, 16, 3))}, {"7.cls", std::to_string(label)}, {"7.json", "{}"}});
  }
  std::string section(const std::string& more = "") const {
    return "{name: image_shards, root: " + root_.string() + ", side: 16, classes: 3" + more + "}";
  }
  fs::path root_ = fresh_folder("image_shards");
};

TEST_F(ImageShards, HaveTheSamplesOfAllArchives) {
  const Splits splits =
      testing::load_splits(section(", mean: [0], deviation: [1], test_transforms: [{transform: {name: center_crop, "
                                   "size: 16}}]"));
  EXPECT_EQ(labels(*splits.train), (std::vector<std::int64_t>{2, 0, 1}));
  EXPECT_EQ(labels(*splits.test), (std::vector<std::int64_t>{0}));
  const at::Tensor pixels = (gather(*splits.test, {0}).inputs[0][0] * 255).round().to(at::kByte);
  EXPECT_TRUE(at::equal(pixels, smooth_image(3, 16, 16, 3)));
  EXPECT_EQ(testing::load_splits(section(", train: [train-1.tar], validation: [train-0.tar]")).validation->size(), 2);
}

TEST_F(ImageShards, MayHaveSuffixesInUpperCase) {
  write(root_ / "train-1.tar", testing::tar_bytes({{"7.JPEG", jpeg_bytes(smooth_image(3, 16, 16))}, {"7.CLS", "1"}}));
  EXPECT_EQ(labels(*testing::load_splits(section(", train: [train-1.tar]")).train), (std::vector<std::int64_t>{1}));
}

TEST_F(ImageShards, ValidateAndTestOnWhatThereIs) {
  write(root_ / "val-0.tar", shard(2));
  const Splits all = testing::load_splits(section());
  EXPECT_EQ(labels(*all.validation), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(labels(*all.test), (std::vector<std::int64_t>{0}));
  fs::remove(root_ / "test-0.tar");
  const Splits without_test = testing::load_splits(section());
  EXPECT_EQ(without_test.validation, nullptr);
  EXPECT_EQ(labels(*without_test.test), (std::vector<std::int64_t>{2}));
  fs::remove(root_ / "val-0.tar");
  EXPECT_THAT([&] { testing::load_splits(section()); },
              ThrowsMessage<DataError>(HasSubstr("dataset.test: no file in ")));
}

TEST_F(ImageShards, MayHaveClassesInJson) {
  const auto png = encode_png(smooth_image(3, 16, 16));
  write(root_ / "train-1.tar", testing::tar_bytes({{"7.png", png},
                                                   {"7.json", "{\"caption\": \"a cat\", \"label\": 2}"},
                                                   {"8.json", "{\"cls\": 1}"},
                                                   {"8.png", png},
                                                   {"9.png", png},
                                                   {"9.cls", "0"},
                                                   {"9.json", "{\"label\": 2}"}}));
  EXPECT_EQ(labels(*testing::load_splits(section(", train: [train-1.tar]")).train),
            (std::vector<std::int64_t>{2, 1, 0}));
  for (const auto& [json, why] : Files{{"{\"label\": 3}", "7.json: \"label\" is 3, which is not the number of a class"},
                                       {"{\"label\": 1.5}", "label: is"},
                                       {"{", "7.json: "},
                                       {"{}", "no class (.cls, or .json"}}) {
    write(root_ / "train-1.tar", testing::tar_bytes({{"7.png", png}, {"7.json", json}}));
    EXPECT_THAT([&] { testing::load_splits(section()); }, ThrowsMessage<DataError>(HasSubstr(why))) << json;
  }
}

// macOS Finder adds its own members between the two files of a sample.
TEST_F(ImageShards, IgnoreHiddenMembers) {
  const auto png = encode_png(smooth_image(3, 16, 16));
  write(root_ / "train-1.tar",
        testing::tar_bytes({{".DS_Store", "x"}, {"a/7.png", png}, {"a/._7.png", "x"}, {"a/7.cls", "1"}}));
  EXPECT_EQ(labels(*testing::load_splits(section(", train: [train-1.tar]")).train), (std::vector<std::int64_t>{1}));
}

TEST_F(ImageShards, RefuseInvalidSamples) {
  const auto refused = [&](const std::string& why, const std::string& more = "") {
    EXPECT_THAT([&] { testing::load_splits(section(more)); }, ThrowsMessage<DataError>(HasSubstr(why)));
  };
  refused("dataset.validation: no file in " + root_.string() + " matches \"val*\"", ", validation: [\"val*\"]");
  write(root_ / "train-1.tar", shard(3));
  refused("7.cls is \"3\", which is not the number of a class; dataset.classes: 3 classes");
  for (const char* text : {"1.9", "2 5 7", "1abc", "", "-1", "0x1"}) {
    write(root_ / "train-1.tar", testing::tar_bytes({{"7.png", "x"}, {"7.cls", text}}));
    refused(std::string("7.cls is \"") + text + "\", which is not the number of a class");
  }
  write(root_ / "train-1.tar", testing::tar_bytes({{"7.png", "x"}, {"7.cls", "1"}, {"7.png", "y"}, {"7.cls", "2"}}));
  refused("sample \"7\" has a second image: 7.png");
  write(root_ / "train-1.tar",
        testing::tar_bytes({{"7.png", "x"}, {"7.cls", "1"}, {"8.png", "y"}, {"8.cls", "2"}, {"7.cls", "1"}}));
  refused("has a second sample \"7\"");
  write(root_ / "train-1.tar", testing::tar_bytes({{"7.cls", "1"}}));
  refused("sample \"7\" has no image");
  write(root_ / "train-1.tar", testing::tar_bytes({{"7.png", "x"}}));
  refused("sample \"7\" has no class (.cls, or .json");
  for (const auto& empty : {testing::tar_bytes({}), testing::tar_bytes({{"README", "nothing"}})}) {
    write(root_ / "train-1.tar", empty);
    refused("train-1.tar: the archive has no samples");
  }
}

}  // namespace
}  // namespace phalanx

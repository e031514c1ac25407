// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/testing/idx_files.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using testing::Bytes;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Returns a record whose planes have the values red, red + 1 and red + 2, except for a bright pixel in a corner.
Bytes record(std::uint8_t label, std::uint8_t red) {
  Bytes bytes{label};
  for (std::uint8_t plane = 0; plane < 3; ++plane)
    bytes.insert(bytes.end(), 32 * 32, static_cast<std::uint8_t>(red + plane));
  bytes[1] = 255;
  return bytes;
}

// Batch i has i records with red = 10 i; the test batch has two.
class Cifar10 : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("PHALANX_DATA", root_.parent_path().c_str(), 1);
    for (std::uint8_t batch = 1; batch <= 5; ++batch) {
      Bytes bytes;
      for (std::uint8_t i = 0; i < batch; ++i) {
        const auto next = record(static_cast<std::uint8_t>(batch + i), static_cast<std::uint8_t>(10 * batch));
        bytes.insert(bytes.end(), next.begin(), next.end());
      }
      testing::write_plain(root_ / ("data_batch_" + std::to_string(batch) + ".bin"), bytes);
    }
    auto bytes = record(7, 100);
    const auto second = record(2, 200);
    bytes.insert(bytes.end(), second.begin(), second.end());
    testing::write_plain(root_ / "test_batch.bin", bytes);
  }

  static Splits load(const std::string& settings = "") {
    return config::load_as<Datasets::Choice>("dataset", "{name: cifar10" + settings + "}", "test.yaml").make();
  }

  static Batch gather(const Dataset& split, const std::vector<std::int64_t>& indices, std::uint64_t seed = 0) {
    Batch batch;
    split.gather(indices, seed, batch);
    return batch;
  }

  template <class Error>
  static auto refused(const std::string& message) {
    return ThrowsMessage<Error>(HasSubstr(message));
  }

  std::filesystem::path root_ = testing::fresh_folder("cifar10_test/cifar10");
};

TEST_F(Cifar10, ReadsTheBatchesInOrder) {
  const auto splits = load();
  EXPECT_EQ(splits.train->size(), 1 + 2 + 3 + 4 + 5);
  EXPECT_EQ(splits.test->size(), 2);
  EXPECT_EQ(splits.train->spec().inputs.at(0).shape, (std::vector<std::int64_t>{3, 32, 32}));
  EXPECT_EQ(splits.train->spec().targets.at(0).classes, 10);
  const auto batch = gather(*splits.train, {0, 2, 14});
  const auto* labels = batch.targets[0].data_ptr<std::int64_t>();
  EXPECT_EQ((std::vector<std::int64_t>{labels, labels + 3}), (std::vector<std::int64_t>{1, 3, 9}));
  EXPECT_EQ(gather(*splits.test, {1}).targets[0].item<std::int64_t>(), 2);
}

TEST_F(Cifar10, NormalizesRedGreenAndBlue) {
  const auto pixels = gather(*load().train, {2}).inputs[0];
  const std::array mean{0.4914, 0.4822, 0.4465}, deviation{0.2470, 0.2435, 0.2616};
  for (int plane = 0; plane < 3; ++plane) {
    const double expected = ((20 + plane) / 255.0 - mean[plane]) / deviation[plane];
    EXPECT_NEAR(pixels[0][plane][31][31].item<float>(), expected, 1e-5) << plane;
  }
  EXPECT_NEAR(pixels[0][0][0][0].item<float>(), (1 - mean[0]) / deviation[0], 1e-5);
}

TEST_F(Cifar10, TakesTheStatisticsOfTheConfig) {
  const auto pixels = gather(*load(", mean: [0, 0.5, 0], deviation: [1, 0.5, 1]").train, {2}).inputs[0];
  EXPECT_NEAR(pixels[0][0][9][9].item<float>(), 20 / 255.0, 1e-6);
  EXPECT_NEAR(pixels[0][1][9][9].item<float>(), (21 / 255.0 - 0.5) / 0.5, 1e-6);
  EXPECT_THAT([] { load(", mean: [0.5]"); }, refused<ConfigError>("one number for each of 3 channels, but have 1"));
  EXPECT_THAT([] { load(", deviation: [1, 0, 1]"); }, refused<ConfigError>("above 0"));
}

TEST_F(Cifar10, AugmentsOnlyTrainingAndOnlyIfConfigured) {
  const auto plain = load(), augmented = load(", augment: true");
  const std::vector<std::int64_t> train{0, 5, 9, 14}, test{0, 1};
  EXPECT_TRUE(at::equal(gather(*plain.train, train, 1).inputs[0], gather(*plain.train, train, 2).inputs[0]));
  const auto first = gather(*augmented.train, train, 1), second = gather(*augmented.train, train, 2);
  EXPECT_FALSE(at::equal(first.inputs[0], second.inputs[0]));
  EXPECT_TRUE(at::equal(first.targets[0], second.targets[0]));
  EXPECT_TRUE(at::equal(gather(*augmented.train, train, 1).inputs[0], first.inputs[0]));
  EXPECT_TRUE(at::equal(gather(*augmented.test, test, 1).inputs[0], gather(*plain.test, test, 2).inputs[0]));
  EXPECT_THAT([] { load(", augment: true, transforms: [{transform: flip}]"); },
              refused<ConfigError>("dataset.augment: cannot be combined with dataset.transforms"));
}

TEST_F(Cifar10, FindsTheFolderThatTheArchiveUnpacks) {
  const auto above = testing::fresh_folder("cifar10_test/above");
  std::filesystem::rename(root_, above / "cifar-10-batches-bin");
  EXPECT_EQ(load(", root: " + above.string()).train->size(), 15);
}

// Returns a batch pickled by Python 2 with protocol 2.
std::string python_batch(const std::string& pixels, const std::string& labels, const std::string& key = "labels") {
  const auto length = static_cast<std::uint32_t>(pixels.size());
  const std::string bytes = std::string("T") + std::string(reinterpret_cast<const char*>(&length), 4) + pixels;
  const std::string rows(1, static_cast<char>(pixels.size() / 3072)), zero(1, '\0');
  return "\x80\x02}q\x01(U\x04"
         "dataq\x02"
         "cnumpy.core.multiarray\n_reconstruct\nq\x03"
         "cnumpy\nndarray\nq\x04K" +
         zero +
         "\x85U\x01"
         "b\x87Rq\x05(K\x01K" +
         rows + "M" + zero +
         "\x0c\x86"
         "cnumpy\ndtype\nU\x02u1K" +
         zero + "K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK" + zero + "tb\x89" + bytes + "tbU" +
         std::string(1, static_cast<char>(key.size())) + key + "](" + labels + "eu.";
}

TEST_F(Cifar10, ReadsThePythonVersion) {
  const auto python = root_.parent_path() / "python" / "cifar-10-batches-py";
  std::filesystem::create_directories(python);
  const auto write = [&](const std::string& name, const std::string& bytes) {
    testing::write_plain(python / name, Bytes(bytes.begin(), bytes.end()));
  };
  const std::string two(2 * 3072, '\x33');
  for (const char* name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"}) {
    write(name, python_batch(two, "K\x07K\x02"));
  }
  write("test_batch", python_batch(std::string(3072, '\x66'), "K\x09"));
  const std::string root = ", mean: [0, 0, 0], deviation: [1, 1, 1], root: ";
  for (const auto& folder : {python, python.parent_path()}) {
    const auto splits = load(root + folder.string());
    EXPECT_EQ(splits.train->size(), 10);
    EXPECT_EQ(splits.train->label(1), 2);
    EXPECT_EQ(splits.test->label(0), 9);
    EXPECT_NEAR(gather(*splits.test, {0}).inputs[0][0][2][5][5].item<float>(), 0.4, 1e-6);
  }
  const auto refuses = [&](const std::string& bytes, const std::string& why) {
    write("test_batch", bytes);
    EXPECT_THAT([&] { load(root + python.string()); }, refused<DataError>((python / "test_batch").string() + why));
  };
  refuses(python_batch(two, "K\x07"), ": has 1 labels for 2 images");
  refuses(python_batch(two, "K\x07K\x0a"), ": label 10, expected 0 to 9");
  refuses(python_batch(two.substr(1), "K\x07"), ": \"data\" is not an array of rows of 3072 bytes");
  refuses(python_batch(two, "K\x07K\x07", "names"), ": the dictionary has no \"labels\"");
  refuses(python_batch(two, "K\x07").substr(0, 100), ", byte ");
}

TEST_F(Cifar10, SaysWhatToGetWhereWhenFilesAreMissing) {
  std::filesystem::remove(root_ / "data_batch_3.bin");
  EXPECT_THAT([] { load(); }, refused<DataError>("dataset \"cifar10\": files are missing from " + root_.string() +
                                                 ":\n  data_batch_3.bin\nTo get them: https://www.cs.toronto.edu/"));
  setenv("PHALANX_DATA", "/nowhere", 1);
  EXPECT_THAT([] { load(); },
              refused<DataError>("missing from /nowhere/cifar10 (no such folder):\n  data_batch_1.bin\n"));
}

TEST_F(Cifar10, RefusesAFileThatEndsWithinARecord) {
  const auto file = root_ / "data_batch_2.bin";
  std::filesystem::resize_file(file, 2 * 3073 - 1);
  EXPECT_THAT([] { load(); }, refused<DataError>(file.string() + ": byte 6145: the file ends within record 1; a record "
                                                                 "has 3073 bytes. Unpack it again"));
  std::filesystem::resize_file(file, 0);
  EXPECT_THAT([] { load(); }, refused<DataError>(file.string() + ": byte 0: the file ends within record 0"));
}

TEST_F(Cifar10, RefusesALabelThatIsNotAClass) {
  const auto file = root_ / "test_batch.bin";
  auto bytes = testing::read_all(file);
  bytes[3073] = 10;
  testing::write_plain(file, bytes);
  EXPECT_THAT([] { load(); },
              refused<DataError>(file.string() + ": byte 3073: label 10, expected 0 to 9. This is not"));
}

}  // namespace
}  // namespace phalanx

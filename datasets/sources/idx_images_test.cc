// SPDX-License-Identifier: Apache-2.0
// Tests fashion_mnist, emnist and cifar100, which have files like mnist and cifar10.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/testing/idx_files.h"
#include "datasets/testing/splits.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using testing::Bytes;
using testing::fresh_folder;
using testing::idx_bytes;

std::string load_error(const std::string& yaml) {
  try {
    testing::load_splits(yaml);
    return "loaded without an error";
  } catch (const DataError& error) {
    return error.what();
  }
}

// Returns an image whose pixel in row y and column x is y.
Bytes rows_image() {
  Bytes values;
  for (int y = 0; y < 28; ++y) values.insert(values.end(), 28, static_cast<std::uint8_t>(y));
  return values;
}

TEST(FashionMnist, ReadsTheFilesOfMnist) {
  const auto root = fresh_folder("fashion_mnist");
  for (const std::string split : {"train", "t10k"}) {
    testing::write_gzip(root / (split + "-images-idx3-ubyte.gz"), idx_bytes({1, 28, 28}, Bytes(28 * 28, 51)));
    testing::write_plain(root / (split + "-labels-idx1-ubyte"), idx_bytes({1}, {9}));
  }
  const auto splits = testing::load_splits("{name: fashion_mnist, root: " + root.string() + "}");
  Batch batch;
  splits.test->gather(std::array<std::int64_t, 1>{0}, 0, batch);
  EXPECT_NEAR(batch.inputs[0].data_ptr<float>()[0], (0.2 - 0.2860) / 0.3530, 1e-5);
  EXPECT_EQ(splits.train->label(0), 9);
}

TEST(FashionMnist, ReadsImagesOfAnySizeAndNamesWithDots) {
  const auto root = fresh_folder("idx_sizes");
  const auto write = [&](const std::string& split, std::uint32_t height) {
    testing::write_gzip(root / (split + "-images.idx3-ubyte.gz"), idx_bytes({2, height, 5}, Bytes(2 * height * 5, 51)));
    testing::write_plain(root / (split + "-labels.idx1-ubyte"), idx_bytes({2}, {9, 0}));
  };
  write("train", 4);
  write("t10k", 4);
  const auto yaml = "{name: fashion_mnist, root: " + root.string() + "}";
  EXPECT_EQ(testing::load_splits(yaml).train->spec().inputs.at(0).shape, (std::vector<std::int64_t>{1, 4, 5}));
  write("t10k", 3);
  EXPECT_EQ(load_error(yaml), (root / "t10k-images.idx3-ubyte.gz").string() + ": byte 8: images of 3 x 5 pixels, but " +
                                  (root / "train-images.idx3-ubyte.gz").string() + " has 4 x 5");
}

TEST(Emnist, TurnsImagesAndNumbersLettersFromZero) {
  const auto root = fresh_folder("emnist");
  for (const std::string split : {"train", "test"}) {
    testing::write_plain(root / ("emnist-letters-" + split + "-images-idx3-ubyte"), idx_bytes({2, 28, 28}, [] {
                           auto values = rows_image();
                           values.insert(values.end(), 28 * 28, 0);
                           return values;
                         }()));
    testing::write_plain(root / ("emnist-letters-" + split + "-labels-idx1-ubyte"), idx_bytes({2}, {1, 26}));
  }
  const auto yaml = "{name: emnist, division: letters, root: " + root.string() + "}";
  const auto splits = testing::load_splits(yaml);
  EXPECT_EQ(splits.train->spec().targets.at(0).classes, 26);
  EXPECT_EQ(splits.train->label(0), 0);
  EXPECT_EQ(splits.train->label(1), 25);
  Batch batch;
  splits.train->gather(std::array<std::int64_t, 1>{0}, 0, batch);
  const auto* pixels = batch.inputs[0].data_ptr<float>();
  EXPECT_NEAR(pixels[5], (5 / 255.0 - 0.1736) / 0.3317, 1e-5) << "column 5 of row 0";
  EXPECT_FLOAT_EQ(pixels[5 * 28], pixels[0]) << "row 5 of column 0";
  testing::write_plain(root / "emnist-letters-test-labels-idx1-ubyte", idx_bytes({2}, {0, 3}));
  EXPECT_EQ(load_error(yaml),
            (root / "emnist-letters-test-labels-idx1-ubyte").string() + ": byte 8: label 0, expected 1 to 26");
}

TEST(Cifar100, TakesFineOrCoarseLabels) {
  const auto root = fresh_folder("cifar100");
  Bytes record{19, 99};
  record.insert(record.end(), 3072, 128);
  testing::write_plain(root / "train.bin", record);
  testing::write_plain(root / "test.bin", record);
  const auto yaml = "{name: cifar100, root: " + root.string();
  EXPECT_EQ(testing::load_splits(yaml + "}").train->label(0), 99);
  EXPECT_EQ(testing::load_splits(yaml + "}").train->spec().targets.at(0).classes, 100);
  EXPECT_EQ(testing::load_splits(yaml + ", coarse: true}").test->label(0), 19);
  record[1] = 100;
  testing::write_plain(root / "test.bin", record);
  EXPECT_EQ(load_error(yaml + "}"),
            (root / "test.bin").string() +
                ": byte 1: label 100, expected 0 to 99. This is not the binary version of CIFAR-100,"
                " or it is damaged");
  record.pop_back();
  testing::write_plain(root / "test.bin", record);
  EXPECT_TRUE(load_error(yaml + "}").find("byte 3073: the file ends within record 0; a record has 3074 bytes") !=
              std::string::npos);
}

}  // namespace
}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "datasets/dataset.h"
#include "datasets/testing/idx_files.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using testing::Bytes;
using testing::idx_bytes;

// Three training and two test images; all pixels of image i have the value i.
class Mnist : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("PHALANX_DATA", root_.parent_path().c_str(), 1);
    testing::write_plain(root_ / "train-images-idx3-ubyte", images(3));
    testing::write_gzip(root_ / "train-labels-idx1-ubyte.gz", idx_bytes({3}, {5, 0, 9}));
    testing::write_gzip(root_ / "t10k-images-idx3-ubyte.gz", images(2));
    testing::write_plain(root_ / "t10k-labels-idx1-ubyte", idx_bytes({2}, {7, 2}));
  }

  static Bytes images(std::uint32_t count) {
    Bytes values;
    for (std::uint32_t i = 0; i < count; ++i) values.insert(values.end(), 28 * 28, static_cast<std::uint8_t>(i));
    return idx_bytes({count, 28, 28}, values);
  }

  static Splits load() { return Datasets::Choice("mnist").make(); }

  static std::string error() {
    try {
      load();
      return "loaded without an error";
    } catch (const DataError& error) {
      return error.what();
    }
  }

  std::filesystem::path root_ = testing::fresh_folder("mnist_test/mnist");
};

TEST_F(Mnist, ReadsPlainAndCompressedFiles) {
  const auto splits = load();
  EXPECT_EQ(splits.train->size(), 3);
  EXPECT_EQ(splits.test->size(), 2);
  EXPECT_EQ(splits.train->spec().inputs.at(0).shape, (std::vector<std::int64_t>{1, 28, 28}));
  EXPECT_EQ(splits.train->spec().targets.at(0).classes, 10);
  Batch batch;
  splits.train->gather(std::array<std::int64_t, 2>{2, 0}, 0, batch);
  EXPECT_EQ(batch.targets[0].data_ptr<std::int64_t>()[0], 9);
  EXPECT_NEAR(batch.inputs[0].data_ptr<float>()[0], (2 / 255.0 - 0.1307) / 0.3081, 1e-6);
}

TEST_F(Mnist, TransformsOnlyTrainingAndOnlyIfConfigured) {
  const auto load_with = [](const std::string& transforms) {
    const auto section = "{name: mnist, transforms: [" + transforms + "]}";
    return config::load_as<Datasets::Choice>("dataset", section, "test.yaml").make();
  };
  const auto plain = load(), moved = load_with("{transform: {name: random_crop, size: 28, padding: 4}}");
  const auto image = [](const Dataset& split, std::int64_t index, std::uint64_t seed) {
    Batch batch;
    split.gather(std::array{index}, seed, batch);
    return batch.inputs[0];
  };
  EXPECT_FALSE(at::equal(image(*moved.train, 2, 1), image(*plain.train, 2, 1)));
  EXPECT_TRUE(at::equal(image(*moved.train, 2, 1), image(*moved.train, 2, 1)));
  EXPECT_TRUE(at::allclose(image(*moved.train->unchanged(), 2, 1), image(*plain.train, 2, 1)));
  EXPECT_TRUE(at::equal(image(*moved.test, 1, 1), image(*plain.test, 1, 1)));
  const auto smaller = load_with("{transform: {name: center_crop, size: 20}}");
  EXPECT_THROW(image(*smaller.train, 0, 1), std::invalid_argument);
}

TEST_F(Mnist, SaysWhatToGetWhereWhenTheFolderIsMissing) {
  setenv("PHALANX_DATA", "/nowhere", 1);
  EXPECT_EQ(error(), R"(dataset "mnist": files are missing from /nowhere/mnist (no such folder):
  train-images-idx3-ubyte or train-images-idx3-ubyte.gz
  train-labels-idx1-ubyte or train-labels-idx1-ubyte.gz
  t10k-images-idx3-ubyte or t10k-images-idx3-ubyte.gz
  t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte.gz
To get them: bazel run //tools:download -- mnist, or any mirror of MNIST, compressed or not.
To use them from elsewhere: set dataset.root to their folder, or PHALANX_DATA to the folder above it.
To train without files: the dataset "digits" generates its own.)");
}

TEST_F(Mnist, NamesOnlyTheFilesThatAreMissing) {
  std::filesystem::remove(root_ / "t10k-labels-idx1-ubyte");
  EXPECT_TRUE(error().starts_with("dataset \"mnist\": files are missing from " + root_.string() +
                                  ":\n  t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte.gz\nTo get"))
      << error();
}

TEST_F(Mnist, RefusesAnotherNumberOfLabels) {
  const auto file = root_ / "t10k-labels-idx1-ubyte";
  testing::write_plain(file, idx_bytes({3}, {7, 2, 1}));
  EXPECT_EQ(error(), file.string() + ": byte 4: 3 labels for 2 images");
}

TEST_F(Mnist, RefusesALabelThatIsNotADigit) {
  const auto file = root_ / "t10k-labels-idx1-ubyte";
  testing::write_plain(file, idx_bytes({2}, {7, 10}));
  EXPECT_EQ(error(), file.string() + ": byte 9: label 10, expected 0 to 9");
}

}  // namespace
}  // namespace phalanx

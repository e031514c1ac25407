// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/testing/idx_files.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

template <class T>
std::string bytes_of(const std::vector<T>& tokens) {
  return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(T)};
}

std::vector<std::int64_t> values(const at::Tensor& tensor) {
  const auto* data = tensor.const_data_ptr<std::int64_t>();
  return {data, data + tensor.numel()};
}

class Tokens : public ::testing::Test {
 protected:
  void SetUp() override {
    write_atomically(root_ / "train.bin", bytes_of<std::uint16_t>({5, 6, 7, 8, 9, 10, 11, 12}));
    write_atomically(root_ / "val.bin", bytes_of<std::uint16_t>({1, 2, 3, 4}));
  }
  Splits load(const std::string& fields = "vocabulary: 13, context: 3") const {
    const auto section = "{name: tokens, root: " + root_.string() + ", " + fields + "}";
    return config::load_as<Datasets::Choice>("dataset", section, "test.yaml").make();
  }
  static Batch gather(const Dataset& split, const std::vector<std::int64_t>& indices) {
    Batch batch;
    split.gather(indices, 0, batch);
    return batch;
  }
  std::filesystem::path root_ = testing::fresh_folder("tokens");
};

TEST_F(Tokens, AreWindowsAndTheirNextTokens) {
  const Splits splits = load();
  EXPECT_EQ(splits.train->size(), 2);
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_FALSE(splits.train->samples_overlap());
  const auto batch = gather(*splits.train, {1, 0});
  EXPECT_EQ(values(batch.inputs[0]), (std::vector<std::int64_t>{8, 9, 10, 5, 6, 7}));
  EXPECT_EQ(values(batch.targets[0]), (std::vector<std::int64_t>{9, 10, 11, 6, 7, 8}));
}

TEST_F(Tokens, MayOverlapAndBeOf32Bits) {
  const auto train = load("vocabulary: 13, context: 3, stride: 1").train;
  EXPECT_EQ(train->size(), 5);
  EXPECT_TRUE(train->samples_overlap());
  EXPECT_EQ(values(gather(*train, {4}).targets[0]), (std::vector<std::int64_t>{10, 11, 12}));
  write_atomically(root_ / "wide.bin", bytes_of<std::uint32_t>({70000, 1, 2, 3}));
  const auto wide = load("vocabulary: 70001, context: 3, type: uint32, train: wide.bin, test: wide.bin").train;
  EXPECT_EQ(values(gather(*wide, {0}).inputs[0]), (std::vector<std::int64_t>{70000, 1, 2}));
}

TEST_F(Tokens, AreReadInWindowsOfAnyLength) {
  std::vector<std::uint16_t> tokens;
  for (int i = 0; i < 400; ++i) tokens.push_back(static_cast<std::uint16_t>(i * 37 % 1000));
  write_atomically(root_ / "train.bin", bytes_of(tokens));
  for (const int context : {1, 15, 16, 17, 33, 64}) {
    const auto train = load("vocabulary: 1000, test: train.bin, stride: 1, context: " + std::to_string(context)).train;
    const auto batch = gather(*train, {7});
    for (int i = 0; i < context; ++i) {
      EXPECT_EQ(values(batch.inputs[0])[i], tokens[7 + i]) << context;
      EXPECT_EQ(values(batch.targets[0])[i], tokens[8 + i]) << context;
    }
  }
  tokens[40] = 1000;
  write_atomically(root_ / "train.bin", bytes_of(tokens));
  for (const int context : {15, 16, 17, 33}) {
    const auto train = load("vocabulary: 1000, test: train.bin, stride: 1, context: " + std::to_string(context)).train;
    for (const int place : {0, 1, context - 1, context}) {
      EXPECT_THAT([&] { gather(*train, {40 - place}); }, ThrowsMessage<DataError>(HasSubstr("byte 80: token 1000")))
          << context << ", at " << place;
    }
    EXPECT_NO_THROW(gather(*train, {41, 39 - context}));
  }
}

// Files of more than 128 MiB are not mapped.
TEST_F(Tokens, AreReadFromFilesThatAreNotMapped) {
  const std::int64_t bytes = (128 << 20) + 512;
  std::filesystem::resize_file(root_ / "train.bin", static_cast<std::uintmax_t>(bytes));  // sparse
  const auto train = load("vocabulary: 13, context: 3").train;
  EXPECT_EQ(train->size(), (bytes / 2 - 4) / 3 + 1);
  const auto batch = gather(*train, {1, train->size() - 1});
  EXPECT_EQ(values(batch.inputs[0]), (std::vector<std::int64_t>{8, 9, 10, 0, 0, 0}));
  EXPECT_EQ(values(batch.targets[0]), (std::vector<std::int64_t>{9, 10, 11, 0, 0, 0}));
  std::filesystem::resize_file(root_ / "train.bin", 16);
  EXPECT_THAT([&] { gather(*train, {train->size() - 1}); },
              ThrowsMessage<DataError>(HasSubstr("the file has become shorter")));
}

TEST_F(Tokens, RefuseWhatDoesNotFit) {
  EXPECT_THAT(
      [&] { gather(*load("vocabulary: 11, context: 3").train, {0, 1}); },
      ThrowsMessage<DataError>(AllOf(HasSubstr("train.bin: byte 12: token 11"), HasSubstr("vocabulary is 11"))));
  EXPECT_THAT([&] { load("context: 8, test: train.bin"); },
              ThrowsMessage<DataError>(HasSubstr("has 8 tokens, but a sample needs 9")));
  EXPECT_THAT([&] { load("context: 3, train: none.bin"); }, ThrowsMessage<DataError>(HasSubstr("none.bin")));
  write_atomically(root_ / "odd.bin", "abc");
  EXPECT_THAT([&] { load("context: 3, train: odd.bin"); },
              ThrowsMessage<DataError>(HasSubstr("ends within a token of 2 bytes")));
  write_atomically(root_ / "empty.bin", "");
  EXPECT_THAT([&] { load("context: 3, train: empty.bin"); }, ThrowsMessage<DataError>(HasSubstr("the file is empty")));
}

}  // namespace
}  // namespace phalanx

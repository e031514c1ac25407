// SPDX-License-Identifier: Apache-2.0
#include "datasets/files/idx_file.h"

#include <gtest/gtest.h>

#include <iterator>
#include <numeric>

#include "datasets/testing/idx_files.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using testing::Bytes;
using testing::fresh_folder;
using testing::idx_bytes;

enum class Form { kPlain, kGzip };

// Every defect is a defect of the content, so it must be found at the same offset in both forms.
class IdxFile : public ::testing::TestWithParam<Form> {
 protected:
  void write(const Bytes& bytes) const {
    GetParam() == Form::kPlain ? testing::write_plain(path_, bytes) : testing::write_gzip(path_, bytes);
  }

  void expect_error(const Bytes& bytes, const std::string& problem) const {
    write(bytes);
    try {
      read_idx(path_, 2);
      ADD_FAILURE() << "was read despite: " << problem;
    } catch (const DataError& error) {
      EXPECT_EQ(error.what(), path_.string() + ": " + problem);
    }
  }

  std::filesystem::path path_ = fresh_folder("idx_file") / "file";
};

INSTANTIATE_TEST_SUITE_P(Forms, IdxFile, ::testing::Values(Form::kPlain, Form::kGzip),
                         [](const auto& form) { return form.param == Form::kPlain ? "plain" : "gzip"; });

TEST_P(IdxFile, GivesShapeAndValues) {
  write(idx_bytes({2, 3}, {1, 2, 3, 4, 5, 255}));
  const auto array = read_idx(path_, 2);
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(array.values, (Bytes{1, 2, 3, 4, 5, 255}));
}

TEST_P(IdxFile, ReadsManyChunks) {
  Bytes values(5'000'003);
  std::iota(values.begin(), values.end(), 0);
  write(idx_bytes({5'000'003}, values));
  EXPECT_EQ(read_idx(path_, 1).values, values);
}

TEST_P(IdxFile, RefusesAnotherMagic) {
  expect_error({'P', 'K', 3, 4, 0, 0}, "byte 0: not an IDX file: it starts with 50 4b 03 04, not 00 00");
}

TEST_P(IdxFile, RefusesAnotherType) {
  expect_error({0, 0, 0x0d, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0}, "byte 2: values of type 0d, expected 08 (bytes)");
}

TEST_P(IdxFile, RefusesAnotherRank) { expect_error(idx_bytes({1, 1, 1}, {0}), "byte 3: 3 dimensions, expected 2"); }

TEST_P(IdxFile, RefusesAnEmptyDimension) { expect_error(idx_bytes({2, 0}, {}), "byte 8: dimension 1 has size 0"); }

TEST_P(IdxFile, RefusesTruncation) {
  expect_error({}, "byte 0: the file ends within the magic number");
  expect_error({0, 0, 8}, "byte 3: the file ends within the magic number");
  expect_error({0, 0, 8, 2, 0, 0, 0, 2, 0}, "byte 9: the file ends within the sizes");
  expect_error(idx_bytes({2, 3}, {1, 2, 3, 4, 5}),
               "byte 17: the file ends within the 2 x 3 values that its header declares");
}

TEST_P(IdxFile, RefusesTrailingBytes) {
  expect_error(idx_bytes({2, 3}, {1, 2, 3, 4, 5, 6, 7}), "byte 18: the file should end here, but there is more data");
}

// Sizes of 2^63 bytes and more are neither allocated nor overflow.
TEST_P(IdxFile, RefusesAbsurdSizesWithoutAllocatingThem) {
  expect_error(idx_bytes({0xffffffff, 0xffffffff}, {1}), "byte 8: more values than a file can hold");
  expect_error(idx_bytes({0x7fffffff, 0xffffffff}, {1}),
               "byte 13: the file ends within the 2147483647 x 4294967295 values that its header declares");
}

TEST(IdxFileErrors, SaysWhenTheFileIsMissing) {
  try {
    read_idx("/nowhere/file", 1);
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "/nowhere/file: No such file or directory");
  }
}

TEST(IdxFileErrors, SaysWhenTheFileIsAFolder) {
  const auto folder = fresh_folder("idx_folder");
  try {
    read_idx(folder, 1);
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_EQ(error.what(), folder.string() + ": byte 0: Is a directory");
  }
}

class DamagedGzip : public ::testing::Test {
 protected:
  // Returns the error for a compressed file of 100,000 values that `damage` has changed.
  template <class Damage>
  std::string error_after(Damage damage) const {
    Bytes values;
    for (std::uint32_t i = 0; i < 100'000; ++i) values.push_back(static_cast<std::uint8_t>(i * i >> 7));
    testing::write_gzip(path_, idx_bytes({100'000}, values));
    auto bytes = testing::read_all(path_);
    damage(bytes);
    testing::write_plain(path_, bytes);
    try {
      read_idx(path_, 1);
      return "read without an error";
    } catch (const DataError& error) {
      return error.what();
    }
  }

  std::filesystem::path path_ = fresh_folder("damaged_gzip") / "file.gz";
};

TEST_F(DamagedGzip, BreaksOff) {
  const auto error = error_after([](Bytes& bytes) { bytes.erase(bytes.begin() + std::ssize(bytes) / 2, bytes.end()); });
  EXPECT_TRUE(error.starts_with(path_.string() + ": byte ")) << error;
  EXPECT_TRUE(error.ends_with(": the compressed stream is truncated")) << error;
}

TEST_F(DamagedGzip, LacksItsChecksum) {
  const auto error = error_after([](Bytes& bytes) { bytes.erase(bytes.end() - 4, bytes.end()); });
  EXPECT_EQ(error, path_.string() + ": byte 100008: the compressed stream is truncated");
}

TEST_F(DamagedGzip, HasAFlippedBit) {
  const auto error = error_after([](Bytes& bytes) { bytes[bytes.size() / 2] ^= 1; });
  EXPECT_TRUE(error.starts_with(path_.string() + ": byte ")) << error;
}

TEST_F(DamagedGzip, HasAnotherChecksum) {
  const auto error = error_after([](Bytes& bytes) { bytes[bytes.size() - 8] ^= 1; });
  EXPECT_TRUE(error.starts_with(path_.string() + ": byte ")) << error;
  EXPECT_TRUE(error.ends_with(": the compressed stream is damaged: incorrect data check")) << error;
}

}  // namespace
}  // namespace phalanx

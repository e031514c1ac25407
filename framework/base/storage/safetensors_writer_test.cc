// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/safetensors_writer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/safetensors.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

class SafetensorsWriting : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  bool left_nothing() const { return fs::directory_iterator(folder_) == fs::directory_iterator(); }

  const std::string folder_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path_ = folder_ + "/rows.safetensors";
};

TEST_F(SafetensorsWriting, ElementsAppendedInPiecesMakeTheSameFile) {
  const at::Tensor keys = at::arange(5, at::kLong), rows = at::arange(15, at::kFloat).reshape({5, 3});
  save_safetensors(path_, {{"keys", keys}, {"rows", rows}});
  const std::string expected = read_file(path_);
  SafetensorsWriter writer(path_, {{"keys", at::kLong, {5}}, {"rows", at::kFloat, {5, 3}}});
  for (const auto& [begin, count] : {std::pair(0, 2), std::pair(2, 0), std::pair(2, 3)}) {
    writer.append(0, keys.narrow(0, begin, count));
    writer.append(1, rows.narrow(0, begin, count));
  }
  writer.finish();
  EXPECT_EQ(read_file(path_), expected);
}

TEST_F(SafetensorsWriting, AFileThatLacksElementsNeverAppears) {
  {
    SafetensorsWriter writer(path_, {{"keys", at::kLong, {5}}});
    writer.append(0, at::arange(4, at::kLong));
    EXPECT_THAT([&] { writer.finish(); }, ThrowsMessage<std::invalid_argument>("tensor keys lacks elements"));
  }
  EXPECT_TRUE(left_nothing());
}

TEST_F(SafetensorsWriting, ElementsThatDoNotBelongToTheTensorAreRefused) {
  SafetensorsWriter writer(path_, {{"keys", at::kLong, {5}}, {"rows", at::kFloat, {5}}});
  EXPECT_THROW(writer.append(0, at::zeros({2})), std::invalid_argument) << "another dtype";
  EXPECT_THROW(writer.append(0, at::arange(6, at::kLong)), std::invalid_argument) << "too many";
  EXPECT_THROW(writer.append(2, at::zeros({1})), std::out_of_range);
}

TEST_F(SafetensorsWriting, AnUnwritablePathIsNamed) {
  EXPECT_THAT([] { const SafetensorsWriter writer("/proc/absent/w", {}); },
              ThrowsMessage<DataError>(StartsWith("/proc/absent/w: ")));
}

}  // namespace
}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#include "framework/base/read_at.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <string_view>

#include "framework/base/descriptor.h"

namespace phalanx {
namespace {

class ReadAt : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::write(file_.get(), "abcdef", 6), 6); }

  std::string_view read(std::size_t bytes, std::int64_t offset) {
    const auto got = read_at(file_.get(), room_.data(), bytes, offset);
    return {room_.data(), static_cast<std::size_t>(got)};
  }

  Descriptor file_{::memfd_create("read_at_test", MFD_CLOEXEC)};
  std::array<char, 16> room_{};
};

TEST_F(ReadAt, ReturnsTheBytesAtAnOffset) {
  EXPECT_EQ(read(3, 2), "cde");
  EXPECT_EQ(read(0, 2), "");
}

TEST_F(ReadAt, ReturnsFewerBytesAtTheEndOfTheFile) {
  EXPECT_EQ(read(16, 4), "ef");
  EXPECT_EQ(read(16, 100), "");
}

TEST_F(ReadAt, SaysThatAFileCannotBeRead) {
  const Descriptor none;
  EXPECT_EQ(read_at(none.get(), room_.data(), 1, 0), -1);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#include "framework/base/environment.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <cstdlib>

#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr const char* kName = "PHALANX_ENVIRONMENT_TEST";

class EnvironmentTest : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv(kName); }
};

TEST_F(EnvironmentTest, TellsUnsetFromEmpty) {
  EXPECT_EQ(environment(kName), std::nullopt);
  ::setenv(kName, "", 1);
  EXPECT_EQ(environment(kName), "");
}

TEST_F(EnvironmentTest, ReadsIntegers) {
  EXPECT_EQ(environment_int(kName), std::nullopt);
  ::setenv(kName, "-12", 1);
  EXPECT_EQ(environment_int(kName), -12);
}

TEST_F(EnvironmentTest, NamesAVariableThatIsNotAnInteger) {
  ::setenv(kName, "2 ", 1);
  try {
    environment_int(kName);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "environment variable PHALANX_ENVIRONMENT_TEST: expected an integer, got \"2 \"");
  }
}

TEST_F(EnvironmentTest, RefusesWhatIsNotAnInteger) {
  for (const char* value : {"", "x", "1.5", "1e3", " 1", "9223372036854775808"}) {
    ::setenv(kName, value, 1);
    EXPECT_THROW(environment_int(kName), ConfigError) << value;
  }
}

TEST(HostName, IsTheNodeNameOfTheKernel) {
  utsname system{};
  ASSERT_EQ(::uname(&system), 0);
  EXPECT_EQ(host_name(), system.nodename);
}

}  // namespace
}  // namespace phalanx

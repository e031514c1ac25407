// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/limits.h"

#include <gtest/gtest.h>

namespace phalanx::config {
namespace {

TEST(Limits, AcceptOnlyValuesWithinThem) {
  EXPECT_FALSE(check(at_least(1), std::int64_t{1}));
  EXPECT_TRUE(check(at_least(1), std::int64_t{0}));
  EXPECT_FALSE(check(above(0), 1e-300));
  EXPECT_TRUE(check(above(0), 0.0));
  EXPECT_FALSE(check(between(0, 1), 0.0));
  EXPECT_FALSE(check(between(0, 1), 1.0));
  EXPECT_TRUE(check(between(0, 1), 1.0000001));
  EXPECT_FALSE(check(one_of({"a", "b"}), std::string("b")));
  EXPECT_TRUE(check(one_of({"a", "b"}), std::string("c")));
}

TEST(Limits, AcceptAnythingByDefault) {
  EXPECT_FALSE(check({}, -1e300));
  EXPECT_FALSE(check({}, std::int64_t{0}));
  EXPECT_FALSE(check({}, std::string()));
}

TEST(Limits, AreDescribed) {
  EXPECT_EQ(describe({}), "");
  EXPECT_EQ(describe(at_least(1)), "at least 1");
  EXPECT_EQ(describe(above(0)), "above 0");
  EXPECT_EQ(describe({.max = 0.5}), "at most 0.5");
  EXPECT_EQ(describe({.max = 1000000, .exclusive = true}), "below 1000000");
  EXPECT_EQ(describe(between(0, 1)), "between 0 and 1");
  EXPECT_EQ(describe({.min = 0, .max = 1, .exclusive = true}), "above 0 and below 1");
  EXPECT_EQ(describe(one_of({"a"})), "a");
  EXPECT_EQ(describe(one_of({"a", "b", "c"})), "a, b or c");
}

TEST(Limits, SuggestTheNearestChoice) {
  const auto complaint = check(one_of({"auto", "local"}), std::string("lokal"));
  ASSERT_TRUE(complaint);
  EXPECT_EQ(complaint->message, "must be auto or local, got \"lokal\"");
  EXPECT_EQ(complaint->suggestion, "local");
}

}  // namespace
}  // namespace phalanx::config

// SPDX-License-Identifier: Apache-2.0
#include "framework/base/error.h"

#include <gtest/gtest.h>

namespace phalanx {
namespace {

ConfigProblem unknown_key(const std::string& suggestion) {
  return {.origin = "a.yaml", .line = 3, .column = 5, .key = "lrr", .message = "unknown key", .suggestion = suggestion};
}

TEST(ConfigError, HasALineForEachProblem) {
  const ConfigError error({unknown_key("lr"),
                           {.origin = "--set seed=x", .key = "seed", .message = "expected an integer"},
                           {.origin = "a.yaml", .message = "cannot be read"}});
  EXPECT_STREQ(error.what(),
               "a.yaml:3:5: lrr: unknown key (did you mean \"lr\"?)\n"
               "--set seed=x: seed: expected an integer\n"
               "a.yaml: cannot be read");
  EXPECT_EQ(error.problems().size(), 3);
}

TEST(ConfigError, SuggestsNothingWhenNothingIsNear) {
  EXPECT_STREQ(ConfigError({unknown_key("")}).what(), "a.yaml:3:5: lrr: unknown key");
}

TEST(ConfigError, OfAMessageIsOneProblem) {
  const ConfigError error("no ranks");
  EXPECT_STREQ(error.what(), "no ranks");
  ASSERT_EQ(error.problems().size(), 1);
  EXPECT_EQ(error.problems()[0].message, "no ranks");
}

TEST(CommError, DistinguishesConsequencesFromCauses) {
  EXPECT_TRUE(CommError(CommError::Kind::kPeerLost, "").secondary());
  EXPECT_TRUE(CommError(CommError::Kind::kTimeout, "").secondary());
  EXPECT_FALSE(CommError(CommError::Kind::kMismatch, "").secondary());
  EXPECT_FALSE(CommError(CommError::Kind::kSystem, "").secondary());
}

}  // namespace
}  // namespace phalanx

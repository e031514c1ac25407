// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/tuning/best_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace phalanx {
namespace {

Measured row(std::int64_t bytes, const std::string& algorithm, double us, const std::string& op = "all_reduce") {
  return {.op = op, .algorithm = algorithm, .bytes = bytes, .p50_us = us, .ranks = 4, .device = kAny};
}

std::string text(const std::vector<Measured>& rows) {
  std::string all;
  for (const auto& rule : best_rules(rows)) all += describe(rule) + "\n";
  return all;
}

TEST(BestRules, TakeTheFastestOfEachSize) {
  EXPECT_EQ(text({row(1024, "native", 10), row(1024, "doubling", 5), row(1024, "ring", 7),  //
                  row(4096, "native", 10), row(4096, "doubling", 20), row(4096, "ring", 12), row(65536, "native", 100),
                  row(65536, "doubling", 300), row(65536, "ring", 50)}),
            "all_reduce up to 2048 on 4 ranks -> doubling\n"
            "all_reduce up to 16384 on 4 ranks -> native\n"
            "all_reduce on 4 ranks -> ring\n");
}

TEST(BestRules, JoinSizesWithTheSameAlgorithm) {
  EXPECT_EQ(text({row(100, "native", 10), row(100, "ring", 5), row(400, "native", 10), row(400, "ring", 5),
                  row(1600, "native", 5), row(1600, "ring", 10)}),
            "all_reduce up to 800 on 4 ranks -> ring\n");
}

TEST(BestRules, AreEmptyIfNativeIsBest) {
  EXPECT_EQ(text({row(100, "native", 5), row(100, "ring", 10), row(400, "native", 5), row(400, "ring", 10)}), "");
  EXPECT_EQ(text({}), "");
}

TEST(BestRules, IgnoreSmallDifferences) {
  EXPECT_EQ(text({row(100, "native", 10), row(100, "ring", 9.6)}), "");
  EXPECT_EQ(text({row(100, "native", 10), row(100, "ring", 5), row(400, "native", 10), row(400, "ring", 10.4)}),
            "all_reduce on 4 ranks -> ring\n")
      << "the algorithm of the next smaller size is kept";
}

// An algorithm that did not suit a size has no row for it.
TEST(BestRules, AnAlgorithmMayBeAbsentAtASize) {
  EXPECT_EQ(text({row(100, "native", 10), row(100, "ring", 5), row(400, "native", 10)}),
            "all_reduce up to 200 on 4 ranks -> ring\n");
}

TEST(BestRules, AreMadeForEachOperation) {
  EXPECT_EQ(text({row(100, "native", 10, "reduce"), row(100, "ring", 5, "reduce"), row(100, "native", 10, "broadcast"),
                  row(100, "tree", 5, "broadcast")}),
            "reduce on 4 ranks -> ring\nbroadcast on 4 ranks -> tree\n");
}

TEST(BestRules, AreMadeForEachKindOfGroup) {
  const auto on = [](int ranks, Scope scope, const std::string& algorithm, double us) {
    Measured measured = row(100, algorithm, us);
    measured.ranks = ranks;
    measured.scope = to_string(scope);
    measured.device = "cpu";
    return measured;
  };
  EXPECT_EQ(
      text({on(2, Scope::kHost, "native", 5), on(2, Scope::kHost, "ring", 10), on(2, Scope::kHosts, "native", 10),
            on(2, Scope::kHosts, "ring", 5), on(4, Scope::kHosts, "native", 10), on(4, Scope::kHosts, "tree", 5)}),
      "all_reduce on 2 ranks of several hosts for cpu -> ring\n"
      "all_reduce on 4 ranks of several hosts for cpu -> tree\n");
}

}  // namespace
}  // namespace phalanx

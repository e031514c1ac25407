// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/same_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kYaml = "seed: 1\noptimizer:\n  name: sgd\n  lr: 0.1\nlaunch:\n  ranks: 2\n";

StartFacts facts(const std::string& torch = "2.13.0", const std::string& config = kYaml,
                 const std::string& host = "h1") {
  return {.host = host, .versions = {{"Phalanx", "0.1.0"}, {"LibTorch", torch}}, .config = config};
}

std::string with_value(const std::string& before, const std::string& after) {
  std::string yaml = kYaml;
  return yaml.replace(yaml.find(before), before.size(), after);
}

TEST(StartDifference, IsEmptyForTheSameFacts) {
  EXPECT_EQ(start_difference(1, facts("2.13.0", kYaml, "h2"), facts()), "") << "hosts may differ";
}

TEST(StartDifference, NamesTheRankTheHostAndBothVersions) {
  EXPECT_THAT(start_difference(3, facts("2.12.0", kYaml, "h2"), facts()),
              HasSubstr("rank 3 on h2 has LibTorch 2.12.0, but rank 0 on h1 has 2.13.0; install the same version"));
  StartFacts without = facts();
  without.versions.erase("LibTorch");
  EXPECT_THAT(start_difference(1, without, facts()), HasSubstr("has LibTorch none, but rank 0 on h1 has 2.13.0"));
  EXPECT_THAT(start_difference(1, facts(), without), HasSubstr("has LibTorch 2.13.0, but rank 0 on h1 has none"));
}

TEST(StartDifference, NamesTheKeyAndBothValues) {
  const auto difference = [](const std::string& yaml) { return start_difference(1, facts("2.13.0", yaml), facts()); };
  const std::string begin = "rank 1 was started with a different config than rank 0: ";
  EXPECT_THAT(difference(with_value("lr: 0.1", "lr: 0.2")),
              HasSubstr(begin + "optimizer.lr is 0.2 on rank 1 and 0.1 on rank 0; compare their --config files"));
  EXPECT_THAT(difference(with_value("seed: 1", "seed: 7")), HasSubstr("seed is 7 on rank 1 and 1 on rank 0"));
  EXPECT_THAT(difference(with_value("ranks: 2", "ranks: 4")), HasSubstr("launch.ranks is 4 on rank 1 and 2 on rank 0"));
  EXPECT_THAT(difference(with_value("  lr: 0.1\n", "")),
              HasSubstr("optimizer.lr is absent on rank 1 and 0.1 on rank 0"));
  EXPECT_THAT(difference(std::string(kYaml) + "mesh:\n  data: 2\n"),
              HasSubstr("mesh is set on rank 1 and absent on rank 0"));
}

TEST(StartDifference, ComparesListsAndFallsBackToDigests) {
  const std::string list = "a:\n  - x\n  - y\nb: 1\n";
  EXPECT_THAT(start_difference(1, facts("2.13.0", list), facts("2.13.0", "a:\n  - x\n  - z\nb: 1\n")),
              HasSubstr("a is - x - y on rank 1 and - x - z on rank 0"));
  EXPECT_THAT(start_difference(1, facts("2.13.0", "a:\n  - x\n"), facts("2.13.0", "a:\n   - x\n")),
              HasSubstr("its digest is "));
}

// Runs the ranks as threads that share a store, and returns what each of them throws.
std::vector<std::string> compare(const std::vector<StartFacts>& all, Seconds timeout = Seconds(20)) {
  const StorePtr store = make_hash_store(timeout);
  std::vector<std::string> texts(all.size());
  {
    std::vector<std::jthread> ranks;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      ranks.emplace_back([&, rank] {
        try {
          check_same_start(all[rank], {.rank = static_cast<int>(rank), .size = static_cast<int>(all.size())}, *store);
        } catch (const Error& error) {
          texts[rank] = error.what();
        }
      });
    }
  }
  return texts;
}

TEST(CheckSameStart, PassesEqualRanks) { EXPECT_THAT(compare({facts(), facts(), facts()}), ::testing::Each("")); }

TEST(CheckSameStart, GivesAllRanksTheSameError) {
  const auto texts = compare({facts(), facts(), facts("2.12.0"), facts("2.11.0")});
  EXPECT_THAT(texts, ::testing::Each(HasSubstr("rank 2 on h1 has LibTorch 2.12.0, but rank 0 on h1 has 2.13.0")));
}

TEST(CheckSameStart, NamesARankThatDoesNotCome) {
  const StorePtr store = make_hash_store(Seconds(0.1));
  EXPECT_THAT([&] { check_same_start(facts(), {.rank = 0, .size = 2}, *store); },
              ThrowsMessage<CommError>(HasSubstr("rank 1 has not come: ")));
  const StorePtr empty = make_hash_store(Seconds(0.1));
  EXPECT_THAT([&] { check_same_start(facts(), {.rank = 1, .size = 2}, *empty); },
              ThrowsMessage<CommError>(HasSubstr("rank 0 has not come: ")));
}

TEST(CheckSameStart, WorksWithoutAStore) {
  testing::run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    EXPECT_NO_THROW(check_same_start(facts(), *world));
    EXPECT_THAT([&] { check_same_start(facts(world->rank() == 0 ? "2.13.0" : "2.12.0"), *world); },
                ThrowsMessage<StartMismatch>(HasSubstr("rank 1 on h1 has LibTorch 2.12.0")));
  });
}

}  // namespace
}  // namespace phalanx

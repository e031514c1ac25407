// SPDX-License-Identifier: Apache-2.0
#include "tools/diff_runs/digest_files.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

constexpr const char* kOne = "0000000000000001";
constexpr const char* kTwo = "0000000000000002";

class DigestFiles : public ::testing::Test {
 protected:
  DigestFiles() : run_(::testing::TempDir() + "digest_files") { std::filesystem::remove_all(run_); }

  void write(int rank, const std::string& text) {
    std::filesystem::create_directories(run_ + "/digests");
    std::ofstream(run_ + "/digests/rank" + std::to_string(rank) + ".txt") << text;
  }

  std::string run_;
};

TEST_F(DigestFiles, AreReadByRank) {
  write(0, "3\tloss\t0000000000000001\tloss\n3\tparameters\t0000000000000002\tfc 1.weight\n4\tlo");
  write(12, "");
  const auto digests = read_digests(run_);
  ASSERT_EQ(digests.size(), 2U);
  ASSERT_EQ(digests.at(0).size(), 2U) << "the last line is torn";
  EXPECT_EQ(digests.at(0)[1].step, 3);
  EXPECT_EQ(digests.at(0)[1].tensor, "fc 1.weight");
  EXPECT_THAT(digests.at(12), IsEmpty());
}

TEST_F(DigestFiles, ThatAreMalformedAreRefusedWithTheLine) {
  write(0, "3\tloss\t0000000000000001\tloss\n3\tlosses\t0000000000000001\tloss\n");
  EXPECT_THAT([&] { (void)read_digests(run_); }, ThrowsMessage<DataError>(HasSubstr("rank0.txt:2: is not a line")));
  write(0, "x\tloss\t0000000000000001\tloss\n");
  EXPECT_THAT([&] { (void)read_digests(run_); }, ThrowsMessage<DataError>(HasSubstr("rank0.txt:1: is not a line")));
}

TEST_F(DigestFiles, ThatAreAbsentHaveARemedy) {
  EXPECT_THAT([&] { (void)read_digests(run_); }, ThrowsMessage<ConfigError>(HasSubstr("train.digests: N")));
}

TEST(CompareDigests, FindsTheFirstStepAndPhaseOnAnyRank) {
  const std::map<int, std::vector<DigestLine>> first{
      {0, {{1, "loss", kOne, "loss"}, {2, "loss", kOne, "loss"}, {2, "parameters", kOne, "a"}}},
      {1, {{1, "loss", kOne, "loss"}, {2, "gradients", kOne, "a"}, {2, "gradients", kOne, "b"}}}};
  auto second = first;
  std::int64_t steps = 0;
  EXPECT_FALSE(compare(first, second, steps));
  EXPECT_EQ(steps, 2);
  second[0][2].digest = kTwo;
  second[1][1].digest = kTwo;
  second[1][2].digest = kTwo;
  const auto difference = compare(first, second, steps);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->step, 2);
  EXPECT_EQ(difference->phase, "gradients");
  EXPECT_EQ(difference->rank, 1);
  EXPECT_EQ(difference->tensor, "a");
  EXPECT_THAT(difference->others, ElementsAre("b"));
  EXPECT_THAT(difference->other_ranks, IsEmpty());
}

TEST(CompareDigests, NamesAllRanksThatDifferInThePhase) {
  const std::map<int, std::vector<DigestLine>> first{{0, {{1, "loss", kOne, "loss"}}},
                                                     {1, {{1, "loss", kOne, "loss"}}}};
  const std::map<int, std::vector<DigestLine>> second{{0, {{1, "loss", kTwo, "loss"}}},
                                                      {1, {{1, "loss", kTwo, "loss"}}}};
  std::int64_t steps = 0;
  EXPECT_THAT(compare(first, second, steps)->other_ranks, ElementsAre(1));
}

TEST(CompareDigests, IgnoresStepsThatOnlyOneRunHas) {
  const std::map<int, std::vector<DigestLine>> first{{0, {{2, "loss", kOne, "loss"}, {4, "loss", kOne, "loss"}}}};
  const std::map<int, std::vector<DigestLine>> second{{0, {{3, "loss", kTwo, "loss"}, {4, "loss", kOne, "loss"}}}};
  std::int64_t steps = 0;
  EXPECT_FALSE(compare(first, second, steps));
  EXPECT_EQ(steps, 1);
}

}  // namespace
}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#include "launch/failure/wrong_result.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

class WrongResultTest : public ::testing::Test {
 protected:
  WrongResultTest() : folder_(::testing::TempDir() + "wrong_result_test") {
    std::filesystem::create_directories(folder_);
  }
  ~WrongResultTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(WrongResultTest, IsTakenOnceAsItWasNoted) {
  note_wrong_result(folder_, {.rank = 12, .host = "node7", .message = "after step 5 replicas differ"});
  note_wrong_result(folder_, {.rank = 3, .host = "node2", .message = "\"a\"\nb"});
  note_wrong_result(folder_, {.rank = 12, .host = "node7", .message = "after step 9 replicas differ"});
  const auto taken = take_wrong_results(folder_);
  EXPECT_THAT(taken, ElementsAre(Field(&WrongResult::message, "\"a\"\nb"),
                                 Field(&WrongResult::message, "after step 5 replicas differ"),
                                 Field(&WrongResult::message, "after step 9 replicas differ")));
  EXPECT_EQ(taken.at(1).rank, 12);
  EXPECT_EQ(taken.at(1).host, "node7");
  EXPECT_THAT(take_wrong_results(folder_), IsEmpty());
}

TEST_F(WrongResultTest, SkipsALineThatWasCut) {
  note_wrong_result(folder_, {.rank = 1, .host = "node1", .message = "whole"});
  std::ofstream(folder_ + "/rank1.wrong", std::ios::app) << R"({"rank": 1, "ho)";
  EXPECT_THAT(take_wrong_results(folder_), ElementsAre(Field(&WrongResult::message, "whole")));
}

TEST_F(WrongResultTest, NeedsNoFolder) {
  note_wrong_result(folder_ + "/missing", {.rank = 1});
  EXPECT_THAT(take_wrong_results(folder_ + "/missing"), IsEmpty());
}

}  // namespace
}  // namespace phalanx

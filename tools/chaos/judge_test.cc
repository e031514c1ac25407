// SPDX-License-Identifier: Apache-2.0
// Judges runs by what they have written.
#include "tools/chaos/judge.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace phalanx::chaos {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

constexpr const char* kLost =
    "Rank 1 of 2 is lost, 1 is left: it was killed by signal 9 (SIGKILL)\n"
    "Training goes on after 0.02 s, after step 16, on ranks: 1\n";
constexpr const char* kNewcomerFailed =
    "Rank 2, which was to take the place of a lost one, has failed: It was killed by signal 9 (SIGKILL).\n";

const Launching kStops{.ranks = 2};
const Launching kShrinks{.ranks = 2, .shrinks = true};
const Launching kReplaces{.ranks = 2, .shrinks = true, .replaces = true};

Row row_of(const char* fault, int status, Event event = Event::kUpdate) {
  return {.trial = {.number = 1, .fault = &fault_named(fault), .rank = 1, .step = 17, .event = event},
          .status = status};
}

Row end_of(const char* fault, int status, const Launching& launching, const std::string& errors) {
  Row row = row_of(fault, status);
  judge_end(launching, errors, row);
  return row;
}

JsonValue summary(const std::vector<Json>& lost, const std::vector<Json>& returned, int ranks) {
  const Json all{{"lost_ranks", lost}, {"returned_ranks", returned}, {"ranks", ranks}};
  return parse_json(all.dump(), "summary.json");
}

Json lost_rank(int rank, int step) { return {{"rank", rank}, {"reason", "killed"}, {"step", step}, {"seconds", 0.02}}; }

Json returned_rank(int rank, int in_place_of, double seconds) {
  return {{"rank", rank}, {"in_place_of", in_place_of}, {"source", 0}, {"step", 44}, {"seconds", seconds}};
}

Row members_of(const char* fault, const Launching& launching, const JsonValue& found, const std::string& errors = kLost,
               Event event = Event::kUpdate) {
  Row row = row_of(fault, 0, event);
  row.recovered = "shrunk";
  judge_members(launching, found, errors, row);
  return row;
}

TEST(JudgeEnd, OfAJobThatEnds) {
  const Row ended = end_of("kill", 3, kStops, "Rank 1 of 2 on vm failed");
  EXPECT_THAT(ended.problems, IsEmpty());
  EXPECT_EQ(ended.recovered, "");
  EXPECT_THAT(end_of("kill", 1, kStops, "").problems, ElementsAre("it ended with status 1"));
  EXPECT_THAT(end_of("kill", 0, kStops, "").problems, ElementsAre("it ended with status 0"));
}

TEST(JudgeEnd, OfAJobThatIsStartedAgain) {
  const Row again = end_of("kill", 0, kStops, "Starts again in 1 s (1 of 3), from runs/x/checkpoints/step-00000016");
  EXPECT_THAT(again.problems, IsEmpty());
  EXPECT_EQ(again.recovered, "relaunched");
}

TEST(JudgeEnd, OfAJobThatHasToGoOnWithoutTheRank) {
  EXPECT_THAT(end_of("kill", 0, kShrinks, kLost).problems, IsEmpty());
  EXPECT_EQ(end_of("kill", 0, kShrinks, kLost).recovered, "shrunk");
  EXPECT_THAT(end_of("kill", 3, kShrinks, "").problems,
              ElementsAre("it did not go on without the rank, but ended with status 3"));
  EXPECT_THAT(end_of("kill", 0, kReplaces, "Starts again in 1 s").problems,
              ElementsAre(HasSubstr("ended with status 0 after it was started again")));
  EXPECT_THAT(end_of("mismatch", 1, kShrinks, "").problems, IsEmpty());
}

TEST(JudgeEnd, OfAFaultThatHasToBeNamed) {
  EXPECT_THAT(end_of("flip_message", 1, kStops, "16980 bytes from rank 1 were damaged").problems, IsEmpty());
  EXPECT_THAT(end_of("flip_message", 1, kStops, "16980 bytes were damaged").problems,
              ElementsAre("rank 1 was not named"));
  EXPECT_THAT(end_of("flip_parameter", 1, kStops, "after step 18 replicas differ: fc2.bias on rank 1").problems,
              IsEmpty());
  EXPECT_THAT(end_of("flip_parameter", 1, kStops, "after step 19 replicas differ: fc2.bias on rank 1").problems,
              ElementsAre("it was not found after step 18 "));
}

TEST(JudgeMembers, WithoutTheLostRank) {
  const Row row = members_of("kill", kShrinks, summary({lost_rank(1, 16)}, {}, 1));
  EXPECT_THAT(row.problems, IsEmpty());
  EXPECT_EQ(row.recovered, "shrunk");
  EXPECT_FALSE(row.returned_seconds);
  EXPECT_EQ(row.lost_steps, 1);
  EXPECT_THAT(members_of("kill", kShrinks, summary({lost_rank(0, 16)}, {}, 1)).problems,
              ElementsAre("lost_ranks of summary.json does not have rank 1"));
}

TEST(JudgeMembers, WithANewcomer) {
  const Row row = members_of("kill", kReplaces, summary({lost_rank(1, 17)}, {returned_rank(2, 1, 0.14)}, 2));
  EXPECT_THAT(row.problems, IsEmpty());
  EXPECT_EQ(row.recovered, "replaced");
  EXPECT_EQ(row.returned_seconds, 0.14);
  EXPECT_EQ(row.lost_steps, 0);
}

TEST(JudgeMembers, LoseTheReceiverOfADamagedMessage) {
  const Row row = members_of("flip_message", kReplaces, summary({lost_rank(0, 17)}, {returned_rank(2, 0, 0.2)}, 2));
  EXPECT_THAT(row.problems, IsEmpty());
  EXPECT_EQ(row.returned_seconds, 0.2);
  EXPECT_THAT(members_of("flip_message", kReplaces, summary({lost_rank(0, 17)}, {}, 1)).problems,
              ElementsAre("no process has taken the place of rank 0"));
}

TEST(JudgeMembers, MissANewcomer) {
  EXPECT_THAT(members_of("kill", kReplaces, summary({lost_rank(1, 17)}, {}, 1)).problems,
              ElementsAre("no process has taken the place of rank 1"));
  EXPECT_THAT(members_of("kill", kReplaces, summary({lost_rank(1, 17)}, {returned_rank(2, 0, 1)}, 2)).problems,
              ElementsAre("no process has taken the place of rank 1"));
  EXPECT_THAT(members_of("kill", kReplaces, summary({lost_rank(1, 17)}, {returned_rank(2, 1, 1)}, 1)).problems,
              ElementsAre("it ended on 1 of 2 ranks"));
}

TEST(JudgeMembers, DoNotReplaceARankThatHasLeft) {
  EXPECT_THAT(members_of("leave_early", kReplaces, summary({lost_rank(1, 17)}, {}, 1)).problems, IsEmpty());
  EXPECT_THAT(members_of("leave_early", kReplaces, summary({lost_rank(1, 17)}, {returned_rank(2, 1, 1)}, 2)).problems,
              ElementsAre("a process has taken the place of rank 1"));
}

TEST(JudgeMembers, LoseTheFirstNewcomerIfItIsKilled) {
  const auto later = summary({lost_rank(1, 17)}, {returned_rank(3, 1, 1.3)}, 2);
  EXPECT_THAT(members_of("kill_newcomer", kReplaces, later, std::string(kLost) + kNewcomerFailed).problems, IsEmpty());
  EXPECT_THAT(members_of("kill_newcomer", kReplaces, later, kLost).problems,
              ElementsAre("the first newcomer was not killed"));
  const auto second = summary({lost_rank(1, 17), lost_rank(2, 45)}, {returned_rank(2, 1, 0.2)}, 1);
  EXPECT_THAT(members_of("kill_newcomer", kReplaces, second, kLost).problems, IsEmpty());
}

TEST(StepsRepeated, AreCompleteStepsThatTheRunHasGoneBack) {
  EXPECT_EQ(last_resumed_step("x resumes after step 4\ny resumes after step 12, z"), 12);
  EXPECT_EQ(last_resumed_step("begins"), 0);
  EXPECT_EQ(steps_repeated(row_of("kill", 3).trial, 12), 5);
  EXPECT_EQ(steps_repeated(row_of("kill", 3, Event::kForward).trial, 12), 4);
  EXPECT_EQ(steps_repeated(row_of("kill", 3, Event::kForward).trial, 17), 0);
  // A check finds the change at the end of its step, or of the next one if it was made at the end of a step.
  EXPECT_EQ(steps_repeated(row_of("flip_parameter", 1, Event::kForward).trial, 12), 5);
  EXPECT_EQ(steps_repeated(row_of("flip_parameter", 1).trial, 12), 6);
}

}  // namespace
}  // namespace phalanx::chaos

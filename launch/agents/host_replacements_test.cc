// SPDX-License-Identifier: Apache-2.0
// The test takes the place of the agents.
#include "launch/agents/host_replacements.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Host a has ranks 0 and 1, and host b has rank 2. Both have no other slot. Up to four ranks may be there.
class ReplacementsOnHosts : public ::testing::Test {
 protected:
  // Takes steps while a process of the job runs, and between them does what is planned for now.
  void run(const std::vector<std::function<void()>>& steps) {
    supervisor_.start([] { return ::execl("/bin/sh", "sh", "-c", "exec sleep 60", nullptr); });
    std::size_t next = 0;
    supervisor_.repeat(std::chrono::milliseconds(1), [&] {
      if (next == steps.size()) return supervisor_.kill(0);
      replacements_.look();
      steps[next++]();
    });
    ::testing::internal::CaptureStderr();
    supervisor_.run();
    printed_ = ::testing::internal::GetCapturedStderr();
  }

  void lose_b() {
    replacements_.lose(1, "it burns", /*host_lost=*/true);
    replacements_.note_certain(1);
  }

  testing::Scratch scratch_;
  HostRanks ranks_{
      {{.host = "a", .first_rank = 0, .ranks = 2, .slots = 2}, {.host = "b", .first_rank = 2, .ranks = 1, .slots = 1}}};
  Supervisor supervisor_{{.stop = SIGTERM, .orphaned = SIGKILL, .after_failure = {}, .forced = {}}};
  HostReplacements replacements_{
      ranks_,
      supervisor_,
      {.replacements = {.ranks = 3, .most = 10, .delay = 600, .meeting_folder = scratch_.folder()},
       .log_folder = scratch_.folder(),
       .max_ranks = 4,
       .tell = [this](std::size_t host, const std::string& order) {
         told_.push_back(ranks_.name(host) + ": " + order.substr(0, order.rfind(' ')));
       }}};
  std::vector<std::string> told_;
  std::string printed_;
};

TEST_F(ReplacementsOnHosts, TakeASlotThatBecomesFreeLater) {
  const auto nothing = [] {};
  run({[&] { lose_b(); }, nothing,
       [&] {
         EXPECT_THAT(told_, IsEmpty());
         EXPECT_EQ(replacements_.expected(), 0);
         replacements_.take({.number = 1});
       },
       nothing, nothing});
  EXPECT_THAT(told_, ElementsAre("a: start 3 2 2 1 2"));
  EXPECT_EQ(printed_, "No process takes the place of rank 2 yet: no host has a free slot (launch.hosts)\n");
}

TEST_F(ReplacementsOnHosts, TakeNoSlotOnceAHostHasJoinedInTheirPlace) {
  const auto nothing = [] {};
  run({[&] { lose_b(); }, nothing,
       [&] {
         ranks_.add("c", 1);
         replacements_.join(2, 1);
         EXPECT_EQ(replacements_.expected(), 1);
       },
       nothing, [&] { replacements_.take({.number = 1}); }, nothing, nothing});
  EXPECT_THAT(told_, ElementsAre("c: start 3 -1 3 0 1"));
}

TEST_F(ReplacementsOnHosts, AreExpectedFromTheLossOnAndDuringTheBackOff) {
  run({[&] {
         replacements_.lose(1, "it burns", /*host_lost=*/true);
         EXPECT_EQ(replacements_.expected(), 1) << "its rank may still take part";
         replacements_.take({.number = 1, .lost = true});
         EXPECT_EQ(replacements_.expected(), 2);
       },
       [&] {
         EXPECT_THAT(told_, ElementsAre("a: start 3 1 1 1 2"));
         EXPECT_EQ(replacements_.expected(), 1);
         replacements_.take({.number = 3, .lost = true});
       },
       [&] { EXPECT_EQ(replacements_.expected(), 2) << "the next one comes after 10 minutes"; }});
}

}  // namespace
}  // namespace phalanx

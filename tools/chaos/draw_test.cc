// SPDX-License-Identifier: Apache-2.0
#include "tools/chaos/draw.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "engine/hooks/planned_fault.h"
#include "framework/base/error.h"

namespace phalanx::chaos {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;

const Subject kSubject{.ranks = 4, .steps = 40, .checkpoint_every = 5};

std::vector<const Fault*> all_faults() {
  std::vector<const Fault*> all;
  for (const auto& fault : faults()) all.push_back(&fault);
  return all;
}

std::vector<std::string> as_text(const std::vector<Trial>& trials) {
  std::vector<std::string> lines;
  for (const auto& trial : trials) {
    lines.push_back(trial.fault->name + " " + std::to_string(trial.rank) + " " + std::to_string(trial.step) + " " +
                    std::string(to_string(trial.event)));
  }
  return lines;
}

TEST(Draw, RepeatsWithItsSeed) {
  EXPECT_EQ(as_text(draw(all_faults(), 60, 7, kSubject)), as_text(draw(all_faults(), 60, 7, kSubject)));
  EXPECT_NE(as_text(draw(all_faults(), 60, 7, kSubject)), as_text(draw(all_faults(), 60, 8, kSubject)));
}

TEST(Draw, AFewRunsHaveAllFaults) {
  std::map<std::string, int> count;
  for (const auto& trial : draw(all_faults(), 2 * static_cast<int>(faults().size()), 1, kSubject)) {
    ++count[trial.fault->name];
  }
  EXPECT_EQ(count.size(), faults().size());
  for (const auto& [name, runs] : count) EXPECT_EQ(runs, 2) << name;
}

TEST(Draw, StaysWithinTheRun) {
  std::set<int> ranks;
  for (const auto& trial : draw(all_faults(), 500, 3, kSubject)) {
    EXPECT_THAT(trial.step, AllOf(Ge(2), Le(39))) << trial.fault->name;
    ranks.insert(trial.rank);
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2, 3}));
}

TEST(Draw, DamagesCheckpointsOnlyWhenThereAreTwo) {
  const std::vector<const Fault*> torn{&fault_named("checkpoint_torn")};
  for (const auto& trial : draw(torn, 100, 1, kSubject)) EXPECT_GT(trial.step, 15);
}

TEST(Draw, TerminatesWhileACheckpointIsWritten) {
  const std::vector<const Fault*> sigterm{&fault_named("sigterm_in_checkpoint")};
  for (const auto& trial : draw(sigterm, 100, 1, kSubject)) {
    EXPECT_EQ(trial.step % 5, 0);
    EXPECT_EQ(trial.event, Event::kUpdate);
  }
}

TEST(Draw, LeavesStepsForNewcomers) {
  Subject subject = kSubject;
  subject.replaces = true;
  for (const auto& trial : draw(all_faults(), 200, 3, subject)) EXPECT_LT(trial.step, step_of_return(40));
}

TEST(Draw, KillsNewcomersAtAllPoints) {
  Subject subject = kSubject;
  subject.replaces = true;
  std::set<std::string> points;
  for (const auto& trial : draw({&fault_named("kill_newcomer")}, 50, 3, subject)) points.insert(trial.newcomer);
  EXPECT_THAT(points, ::testing::UnorderedElementsAreArray(newcomer_points()));
  for (const auto& trial : draw({&fault_named("kill")}, 50, 3, subject)) EXPECT_THAT(trial.newcomer, IsEmpty());
}

TEST(Draw, KnowsWhatHappensBeforeAStep) {
  for (const char* name : {"exception_in_loader", "exception_in_model"}) {
    for (const auto& trial : draw({&fault_named(name)}, 20, 1, kSubject)) {
      EXPECT_EQ(trial.complete_steps(), trial.step - 1) << name;
    }
  }
}

TEST(WhySkipped, NamesWhatIsMissing) {
  const auto why = [](const char* fault, auto change) {
    Subject subject = kSubject;
    change(subject);
    return why_skipped(fault_named(fault), subject);
  };
  EXPECT_THAT(why("kill", [](Subject&) {}), IsEmpty());
  EXPECT_THAT(why("kill_newcomer", [](Subject&) {}), HasSubstr("set faults.on_lost_rank=replace"));
  EXPECT_THAT(why("kill_newcomer", [](Subject& subject) { subject.replaces = true; }), IsEmpty());
  EXPECT_THAT(why("mismatch", [](Subject& subject) { subject.ranks = 1; }), HasSubstr("one rank"));
  EXPECT_THAT(why("stop", [](Subject& subject) { subject.threads = true; }), HasSubstr("threads"));
  EXPECT_EQ(why("disk_full", [](Subject& subject) { subject.no_mounts = "not root"; }), "not root");
  EXPECT_EQ(why("network_cut", [](Subject& subject) { subject.no_hosts = "no tc"; }), "no tc");
  EXPECT_THAT(why("checkpoint_flipped", [](Subject& subject) { subject.keep_last = 1; }), HasSubstr("keep_last"));
  EXPECT_THAT(why("checkpoint_flipped", [](Subject& subject) { subject.steps = 16; }), HasSubstr("only 16 steps"));
}

TEST(Faults, AreCausedByPlannedFaultsThatExist) {
  for (const auto& fault : faults()) {
    if (fault.planned.empty()) continue;
    EXPECT_THAT(planned_fault_kinds(), Contains(fault.planned)) << fault.name;
  }
}

TEST(Faults, SuggestANameThatIsNear) {
  try {
    (void)fault_named("network_cutt");
    ADD_FAILURE() << "found";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"network_cut\"?"));
  }
}

}  // namespace
}  // namespace phalanx::chaos

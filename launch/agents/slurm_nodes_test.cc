// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/slurm_nodes.h"

#include <gmock/gmock.h>

#include <map>
#include <optional>

#include "framework/base/environment.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Variables variables(const std::map<std::string, std::string>& values) {
  return [values](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(NodesOfSlurmJob, HaveASlotForEachTask) {
  EXPECT_THAT(nodes_of_slurm_job(variables({{"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURM_TASKS_PER_NODE", "2(x2),1"}})),
              ElementsAre("n1:2", "n2:2", "n3:1"));
}

TEST(NodesOfSlurmJob, HaveNoSlotsIfTheNumbersAreUnknown) {
  EXPECT_THAT(nodes_of_slurm_job(variables({{"SLURM_JOB_NODELIST", "n[1-2]"}})), ElementsAre("n1", "n2"));
  EXPECT_THAT(nodes_of_slurm_job(variables({{"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "2"}})),
              ElementsAre("n1", "n2"));
}

TEST(NodesOfSlurmJob, OutsideOfAJobSayWhatToDo) {
  EXPECT_THAT([] { nodes_of_slurm_job(variables({})); },
              ThrowsMessage<ConfigError>(HasSubstr("launch.with: srun starts ranks on the nodes of a Slurm job, but "
                                                   "this process runs in none")));
}

TEST(RequireSrun, RefusesAHostThatIsNotInTheJob) {
  EXPECT_THAT([] { require_srun({"localhost", "192.0.2.1:2"}, variables({{"SLURM_JOB_NODELIST", "n[1-2]"}})); },
              ThrowsMessage<ConfigError>(
                  HasSubstr("launch.hosts: 192.0.2.1 is no node of this Slurm job, whose nodes are n1, n2; ")));
}

TEST(RequireSrun, ThisHostNeedsNone) {
  EXPECT_NO_THROW(require_srun({"localhost", host_name() + ":2"}, variables({{"SLURM_JOB_NODELIST", "n1"}})));
}

}  // namespace
}  // namespace phalanx

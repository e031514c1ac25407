// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/agent_command.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "framework/base/argv.h"
#include "framework/testing/scratch.h"
#include "launch/testing/launcher_process.h"

namespace phalanx {
namespace {

// A script takes the place of srun.
TEST(CommandOn, KeepsTheShareOfARankFromSrunAndPassesOnTheRest) {
  testing::Scratch scratch;
  const std::string srun = scratch.path("srun");
  std::ofstream(srun) << "#!/bin/sh\necho \"${SRUN_CPUS_PER_TASK-none} ${SLURM_LABELIO-none} $SLURM_JOB_ID\" > "
                      << scratch.path("seen") << "\n";
  std::filesystem::permissions(srun, std::filesystem::perms::owner_all);
  const auto command = command_on("192.0.2.1", "true", Reach::kSrun);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("PATH", (scratch.folder() + ":/usr/bin:/bin").c_str(), 1);
    for (const char* variable : {"SRUN_CPUS_PER_TASK", "SLURM_LABELIO", "SLURM_JOB_ID"}) ::setenv(variable, "7", 1);
    const auto words = argv_of(command);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(testing::text_of(scratch.path("seen")), "none none 7\n");
}

}  // namespace
}  // namespace phalanx

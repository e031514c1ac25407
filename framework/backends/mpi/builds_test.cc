// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/builds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "framework/base/error.h"

namespace phalanx::mpi {
namespace {

using ::testing::HasSubstr;

using Names = std::set<std::string>;

const Names kOpenMpi{"OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
const Names kHydra{"PMI_RANK", "PMI_SIZE", "PMI_FD", "MPI_LOCALRANKID"};
const Names kSrunWithPmi{"PMI_RANK", "PMI_SIZE", "PMI_FD", "SLURM_STEP_ID"};
const Names kSrunWithPmix{"PMIX_RANK", "SLURM_STEP_ID"};

struct Here {
  bool open_mpi = true;
  bool abi_library = true;
};

Kind kind_under(const Names& set, Here here) {
  const auto variables = [&](const std::string& name) {
    return set.contains(name) ? std::optional<std::string>("0") : std::nullopt;
  };
  return kind_of_launcher(variables, here.open_mpi, [&] { return here.abi_library; });
}

TEST(KindOfLauncher, FollowsTheLauncherWhateverIsInstalled) {
  for (const Here here : {Here{true, true}, Here{true, false}, Here{false, true}, Here{false, false}}) {
    EXPECT_EQ(kind_under(kOpenMpi, here), Kind::kOpenMpi);
    EXPECT_EQ(kind_under(kHydra, here), Kind::kStandardAbi);
  }
  Names inner = kHydra;
  inner.insert("OMPI_COMM_WORLD_RANK");
  EXPECT_EQ(kind_under(inner, {}), Kind::kOpenMpi) << "as detect_launch_environment() decides";
}

TEST(KindOfLauncher, SlurmConnectsWhatIsInstalled) {
  EXPECT_EQ(kind_under(kSrunWithPmi, {}), Kind::kStandardAbi);
  EXPECT_EQ(kind_under(kSrunWithPmi, {.abi_library = false}), Kind::kOpenMpi) << "Open MPI 4 knows PMI";
  EXPECT_EQ(kind_under(kSrunWithPmix, {}), Kind::kOpenMpi);
  EXPECT_EQ(kind_under(kSrunWithPmix, {.open_mpi = false}), Kind::kStandardAbi);
}

TEST(KindOfLauncher, AProcessWithoutALauncherUsesWhatTheProgramIsLinkedWith) {
  EXPECT_EQ(kind_under({}, {}), Kind::kOpenMpi);
  EXPECT_EQ(kind_under({}, {.open_mpi = false}), Kind::kStandardAbi);
}

// This test is linked with no build.
TEST(Builds, OneThatIsMissingIsAnErrorThatNamesIt) {
  const auto problem = [](Kind kind) -> std::string {
    try {
      build_of(kind);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(problem(Kind::kOpenMpi), HasSubstr("backend_openmpi.so"));
  EXPECT_THAT(problem(Kind::kStandardAbi), HasSubstr("standard ABI"));
  EXPECT_EQ(running_version(), "");
}

}  // namespace
}  // namespace phalanx::mpi

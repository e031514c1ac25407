// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/connect.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/base/error.h"

namespace phalanx {
namespace {

LaunchEnvironment launched(int ranks, int on_this_host, const std::string& rendezvous) {
  return {.launcher = "test",
          .rank_info = {.rank = 0, .size = ranks, .local_rank = 0, .local_size = on_this_host},
          .rendezvous = rendezvous,
          .job = "test"};
}

TEST(ChooseBackend, AutoIsTheFastestThatReachesAllRanks) {
  EXPECT_EQ(choose_backend("auto", launched(1, 1, "")), "inproc");
  EXPECT_EQ(choose_backend("auto", launched(4, 4, "file:///tmp/store")), "shm");
  EXPECT_EQ(choose_backend("auto", launched(4, 2, "env://")), "hybrid") << "ranks can meet without MPI";
  EXPECT_EQ(choose_backend("auto", launched(4, 2, "")), "hybrid") << "nothing but MPI's launcher connects them";
}

TEST(ChooseBackend, TakesWhatIsThereAndNamesWhatIsNear) {
  for (const auto* name : {"gloo", "inproc", "mpi", "shm"}) EXPECT_EQ(choose_backend(name, {}), name);
  try {
    (void)choose_backend("glo", {});
    ADD_FAILURE() << "expected a ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"gloo\""), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace phalanx

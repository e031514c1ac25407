// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/peer_library.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "launch/temporary_folder.h"

namespace phalanx::bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

// A cache in which every library counts as installed, without its files.
class PeerLibraries : public ::testing::Test {
 protected:
  PeerLibraries() {
    ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
    for (const auto& library : peer_libraries()) {
      const auto folder = folder_of(library);
      std::filesystem::create_directories(folder);
      write_atomically(folder / "complete", "");
    }
  }
  ~PeerLibraries() override { ::unsetenv("XDG_CACHE_HOME"); }

  std::filesystem::path folder_of(const PeerLibrary& library) const {
    return std::filesystem::path(cache_.path()) / "phalanx" / (library.name + "-" + library.version);
  }

  TemporaryFolder cache_;
};

TEST_F(PeerLibraries, AreFoundByName) {
  std::vector<std::string> names;
  for (const auto& library : peer_libraries()) names.push_back(library.name);
  EXPECT_THAT(names, ElementsAre("intelmpi", "mpich", "oneccl"));
  EXPECT_EQ(find_peer_library("mpich")->name, "mpich");
  EXPECT_EQ(find_peer_library("torch"), nullptr);
}

TEST_F(PeerLibraries, HaveExactVersions) {
  for (const auto& library : peer_libraries()) {
    for (const auto& wheel : library.wheels) EXPECT_THAT(wheel, HasSubstr("=="));
  }
}

TEST_F(PeerLibraries, AreStartedByTheirOwnLauncherInANewEnvironment) {
  const PeerLibrary& library = *find_peer_library("intelmpi");
  const std::string root = folder_of(library);
  const auto command = start_command(library, 2, "/meeting");
  EXPECT_EQ(command.at(0), "env");
  EXPECT_EQ(command.at(1), "-i");
  EXPECT_THAT(command, Contains("LD_LIBRARY_PATH=" + root + "/lib"));
  EXPECT_THAT(command, Contains("I_MPI_ROOT=" + root));
  EXPECT_THAT(command, Not(Contains(StartsWith("XDG_CACHE_HOME="))));
  const std::vector<std::string> end(command.end() - 5, command.end());
  EXPECT_THAT(end, ElementsAre(root + "/bin/mpiexec.hydra", "-n", "2", StartsWith(root + "/peer-"), "/meeting"));
}

TEST_F(PeerLibraries, AreFoundWhereDebiansPipPutsThem) {
  const PeerLibrary& library = *find_peer_library("mpich");
  const auto local = folder_of(library) / "local";
  std::filesystem::create_directories(local / "bin");
  write_atomically(local / "bin" / "mpiexec.hydra", "");
  EXPECT_THAT(start_command(library, 2, "/meeting"), Contains((local / "bin" / "mpiexec.hydra").string()));
}

TEST_F(PeerLibraries, GiveWayIfThereAreMoreRanksThanCores) {
  const PeerLibrary& library = *find_peer_library("intelmpi");
  EXPECT_THAT(start_command(library, 1, ""), Not(Contains("I_MPI_WAIT_MODE=1")));
  EXPECT_THAT(start_command(library, 1'000'000, ""), Contains("I_MPI_WAIT_MODE=1"));
}

TEST_F(PeerLibraries, UseSettingsOfTheUserRatherThanTheirOwn) {
  ::setenv("I_MPI_FABRICS", "ofi", 1);
  const auto command = start_command(*find_peer_library("intelmpi"), 2, "");
  ::unsetenv("I_MPI_FABRICS");
  const auto own = std::ranges::find(command, "I_MPI_FABRICS=shm"),
             user = std::ranges::find(command, "I_MPI_FABRICS=ofi");
  EXPECT_LT(own, user);  // the last one counts
  EXPECT_NE(user, command.end());
}

TEST_F(PeerLibraries, AreOnlyReadyWithTheirProgram) {
  const PeerLibrary& library = *find_peer_library("mpich");
  const auto require = [&] { require_peer_library(library, "--against mpich"); };
  EXPECT_THAT(require, ThrowsMessage<ConfigError>(StartsWith("--against mpich: mpich is not installed")));
  write_atomically(start_command(library, 1, "").end()[-2], "");
  EXPECT_NO_THROW(require());
  std::filesystem::remove_all(folder_of(library));
  EXPECT_THAT(require, ThrowsMessage<ConfigError>(HasSubstr("run bench once without a launcher")));
}

}  // namespace
}  // namespace phalanx::bench

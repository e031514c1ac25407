#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "tools/launch/mpi.h"

namespace phalanx {
namespace {

// Makes <folder>/bin/mpirun, a program of no use, and returns the folder.
std::string mpi_in(const std::string& name) {
  const std::filesystem::path folder = ::testing::TempDir() + "find_mpirun_test/" + name;
  std::filesystem::create_directories(folder / "bin");
  std::ofstream(folder / "bin/mpirun") << "#!/bin/sh\n";
  std::filesystem::permissions(folder / "bin/mpirun", std::filesystem::perms::owner_all);
  return folder;
}

class FindMpirun : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const auto& [name, value] : before_) value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
  }

 private:
  const std::vector<std::pair<const char*, std::optional<std::string>>> before_{
      {"MPI_HOME", environment("MPI_HOME")}, {"PATH", environment("PATH")}};
};

TEST_F(FindMpirun, LooksInMpiHomeThenOnPathThenWhereItWasBuilt) {
  const std::string home = mpi_in("home"), path = mpi_in("path"), built = mpi_in("built");
  ::setenv("MPI_HOME", home.c_str(), 1);
  ::setenv("PATH", ("/no/such/folder:" + path + "/bin").c_str(), 1);
  EXPECT_EQ(find_mpirun(built), home + "/bin/mpirun");
  ::unsetenv("MPI_HOME");
  EXPECT_EQ(find_mpirun(built), path + "/bin/mpirun");
  ::setenv("PATH", "", 1);
  EXPECT_EQ(find_mpirun(built), built + "/bin/mpirun");
}

TEST_F(FindMpirun, ListsWhereItLooked) {
  ::unsetenv("MPI_HOME");
  ::setenv("PATH", "", 1);
  try {
    find_mpirun("/opt/gone");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "cannot find mpirun. Looked for\n"
                 "  $MPI_HOME/bin/mpirun: MPI_HOME is not set\n"
                 "  mpirun on PATH: PATH is empty\n"
                 "  /opt/gone/bin/mpirun (the MPI this program was built with): not there\n"
                 "Install Open MPI 5 and set MPI_HOME to its folder, or launch on this host without MPI: "
                 "launch.with=local.");
  }
}

TEST_F(FindMpirun, TakesNoOtherWhereMpiHomeIsWrong) {
  ::setenv("MPI_HOME", "/opt/wrong", 1);
  ::setenv("PATH", (mpi_in("path") + "/bin").c_str(), 1);
  try {
    find_mpirun(mpi_in("built"));
    FAIL();
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("MPI_HOME is /opt/wrong, but there is no /opt/wrong/bin/mpirun.\n"), 0u) << text;
    EXPECT_NE(text.find("built/bin (the MPI this program was built with)"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace phalanx

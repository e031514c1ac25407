// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/abi/open_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace phalanx::mpi {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> folders_of(const std::optional<HydraProxy>& proxy,
                                    const std::map<std::string, std::string>& set) {
  std::vector<std::string> folders;
  const auto variables = [&](const std::string& name) {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  };
  for (const auto& place : library_places(proxy, variables)) folders.push_back(place.folder);
  return folders;
}

TEST(OpenLibrary, LooksFirstInTheMpiOfTheLauncher) {
  const HydraProxy proxy{.program = "/opt/mpich/bin/hydra_pmi_proxy", .id = "1-2"};
  EXPECT_THAT(folders_of(proxy, {{"MPI_HOME", "/opt/other"}, {"I_MPI_ROOT", "/opt/intel"}}),
              ElementsAre("/opt/mpich/lib", "/opt/mpich/lib64", "/opt/other/lib", "/opt/other/lib64", "/opt/intel/lib",
                          "/opt/intel/lib64"));
  EXPECT_THAT(folders_of(HydraProxy{.program = "", .id = "1-2"}, {{"MPI_HOME", ""}}), ElementsAre())
      << "neither is known";
}

TEST(OpenLibrary, OneThatCannotBeOpenedIsAnErrorEvenIfThereAreOthers) {
  const fs::path folder = ::testing::TempDir() + "open_library_test-" + std::to_string(::getpid());
  fs::create_directories(folder);
  std::ofstream(folder / "libmpi_abi.so.1") << "no library";
  const auto opened = open_library_in({{"/no/such/folder", "first"}, {folder, "second"}, {"/usr/lib", "third"}});
  EXPECT_EQ(opened.handle, nullptr);
  EXPECT_THAT(opened.problem, HasSubstr((folder / "libmpi_abi.so.1").string() + " (second) cannot be opened: "));
  fs::remove_all(folder);
}

TEST(OpenLibrary, SaysWhereItLookedAndWhatToDo) {
  const auto opened = open_library_in({{"/no/such/folder", "of the mpiexec that started this rank"}});
  if (opened.handle != nullptr) GTEST_SKIP() << "the dynamic linker finds " << opened.path;
  EXPECT_THAT(opened.problem,
              AllOf(HasSubstr("looked in /no/such/folder (of the mpiexec that started this rank), and "),
                    HasSubstr("LD_LIBRARY_PATH"), HasSubstr("MPICH has from version 5.0 on"), HasSubstr("MPI_HOME"),
                    HasSubstr("another backend")));
  EXPECT_THAT(open_library_in({}).problem, HasSubstr("looked where the dynamic linker looks"));
}

}  // namespace
}  // namespace phalanx::mpi

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fs = std::filesystem;

// Returns the beginning of the command that starts ranks.
static std::vector<std::string> launcher_command(const char* mpiexec, const std::string& ranks) {
  if (mpiexec != nullptr) return {fs::canonical(mpiexec), "-n", ranks};
  std::vector<std::string> words{PHALANX_MPI_HOME "/bin/mpirun", "--oversubscribe", "--bind-to", "none", "-np", ranks};
  if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  return words;
}

// Replaces this process by a launcher, which starts this program again, once for each rank.
static int become_launcher(const char* mpiexec, const std::string& ranks, char** arguments) {
  auto words = launcher_command(mpiexec, ranks);
  for (; *arguments != nullptr; ++arguments) words.emplace_back(*arguments);
  std::vector<char*> command;
  for (auto& word : words) command.push_back(word.data());
  command.push_back(nullptr);
  ::setenv("HOME", "/tmp", 0);  // Open MPI's mpirun does not start without it
  ::execv(command[0], command.data());
  std::perror(command[0]);
  return 1;
}

// Replaces all tests by one that is skipped for the reason that the file gives.
static void skip_all(const char* file) {
  struct Absent : ::testing::Test {
    explicit Absent(std::string reason) : reason_(std::move(reason)) {}
    void TestBody() override { GTEST_SKIP() << reason_; }
    const std::string reason_;
  };
  std::ifstream text(file);
  std::string reason{std::istreambuf_iterator<char>(text), {}};
  for (char& c : reason) c = c == '\n' ? ' ' : c;
  ::testing::RegisterTest("Mpi", "IsInstalled", nullptr, nullptr, __FILE__, __LINE__,
                          [reason]() -> ::testing::Test* { return new Absent(reason); });
  ::testing::GTEST_FLAG(filter) = "Mpi.IsInstalled";
}

int main(int argc, char** argv) {
  constexpr std::string_view kRanks = "--ranks=";
  const char* const mpiexec = std::getenv("PHALANX_TEST_MPIEXEC");
  const char* const rank = std::getenv(mpiexec != nullptr ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK");
  const bool absent = mpiexec != nullptr && fs::path(mpiexec).filename() == "absent.txt";
  for (int i = 1; i < argc && rank == nullptr && !absent; ++i) {
    const std::string_view argument(argv[i]);
    if (!argument.starts_with(kRanks)) continue;
    return become_launcher(mpiexec, std::string(argument.substr(kRanks.size())), argv);
  }
  if (rank != nullptr && std::string_view(rank) != "0") {
    ::unsetenv("XML_OUTPUT_FILE");  // only rank 0 writes the XML output
    ::testing::GTEST_FLAG(brief) = true;
  }
  ::testing::InitGoogleTest(&argc, argv);
  if (absent) skip_all(mpiexec);
  return RUN_ALL_TESTS();
}

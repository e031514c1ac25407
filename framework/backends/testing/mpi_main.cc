// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

// Replaces this process by mpirun, which starts this program again, once for each rank.
static int become_mpirun(const std::string& ranks, char** arguments) {
  std::vector<std::string> words{PHALANX_MPI_HOME "/bin/mpirun", "--oversubscribe", "--bind-to", "none", "-np", ranks};
  if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  for (; *arguments != nullptr; ++arguments) words.emplace_back(*arguments);
  std::vector<char*> command;
  for (auto& word : words) command.push_back(word.data());
  command.push_back(nullptr);
  ::setenv("HOME", "/tmp", 0);  // mpirun does not start without it
  ::execv(command[0], command.data());
  std::perror(command[0]);
  return 1;
}

int main(int argc, char** argv) {
  constexpr std::string_view kRanks = "--ranks=";
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  for (int i = 1; i < argc && rank == nullptr; ++i) {
    const std::string_view argument(argv[i]);
    if (argument.starts_with(kRanks)) return become_mpirun(std::string(argument.substr(kRanks.size())), argv);
  }
  if (rank != nullptr && std::string_view(rank) != "0") {
    ::unsetenv("XML_OUTPUT_FILE");  // only rank 0 writes the XML output
    ::testing::GTEST_FLAG(brief) = true;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

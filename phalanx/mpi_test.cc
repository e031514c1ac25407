// SPDX-License-Identifier: Apache-2.0
#include "phalanx/mpi.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <torch/nn/modules/linear.h>

#include <string>

#include "phalanx/distributed_data_parallel.h"

// Runs under mpirun, as a program that uses MPI itself.
namespace phalanx {
namespace {

using ::testing::HasSubstr;

class WorldOverMpi : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("OMPI_MCA_btl", "self,sm,tcp", 0);
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    ASSERT_EQ(provided, MPI_THREAD_MULTIPLE);
  }

  static void TearDownTestSuite() { MPI_Finalize(); }
};

int sum_of_ones(MPI_Comm communicator) {
  int sum = 1;
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, communicator);
  return sum;
}

TEST_F(WorldOverMpi, TrainsBesideTheProgramsOwnMessages) {
  World world = world_over_mpi(MPI_COMM_WORLD, {.timeout = std::chrono::seconds(20)});
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  EXPECT_EQ(world.rank(), rank);
  EXPECT_EQ(world.local_size(), world.size());
  torch::nn::Linear layer(3, 2);
  const DistributedDataParallel ddp(layer, world);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(sum_of_ones(MPI_COMM_WORLD), world.size());
    layer->zero_grad();
    layer->forward(at::full({4, 3}, static_cast<float>(rank))).sum().backward();
    const float mean = 4 * static_cast<float>(world.size() - 1) / 2;
    EXPECT_TRUE(at::allclose(layer->weight.grad(), at::full({2, 3}, mean)));
  }
}

TEST_F(WorldOverMpi, HasTheRanksOfAnyCommunicator) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 0 : 1, rank, &part);
  {
    const World world = world_over_mpi(part);
    EXPECT_EQ(world.size(), sum_of_ones(part));
    world.barrier();
  }
  EXPECT_EQ(sum_of_ones(part), rank == 0 ? 1 : 2) << "it is still the program's, with 3 ranks";
  MPI_Comm_free(&part);
}

TEST_F(WorldOverMpi, IsOfBackendMpi) {
  const MPI_Comm world = MPI_COMM_WORLD;
  try {
    init({.backend = "gloo", .mpi_communicator = &world});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("not by gloo"));
  }
}

}  // namespace
}  // namespace phalanx

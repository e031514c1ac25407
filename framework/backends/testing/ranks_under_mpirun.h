// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "framework/backends/mpi/communicator.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/comm/communicator.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/operations/operation_queue.h"

namespace phalanx::mpi {

inline RankInfo rank_info_from_mpirun() {
  const auto number = [](const char* name) { return std::atoi(std::getenv(name)); };
  return {.rank = number("OMPI_COMM_WORLD_RANK"),
          .size = number("OMPI_COMM_WORLD_SIZE"),
          .local_rank = number("OMPI_COMM_WORLD_LOCAL_RANK"),
          .local_size = number("OMPI_COMM_WORLD_LOCAL_SIZE")};
}

/// Tests whose ranks are the processes of the mpirun that started this one (mpi_main.cc).
class RanksUnderMpirun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { start(rank_info_from_mpirun(), Seconds(20)); }

  struct WorldOptions {
    std::int64_t max_elements = INT_MAX;
    bool progress_thread = false;
  };

  /// Connects a new world.
  static CommunicatorPtr connect(const WorldOptions& options) {
    auto queue = std::make_shared<OperationQueue>();
    if (options.progress_thread) queue->start_progress_thread();
    auto group =
        duplicate(MPI_COMM_WORLD,
                  {.name = "world", .timeout = Seconds(20), .local_ranks = 3, .max_elements = options.max_elements});
    return std::make_shared<MpiCommunicator>(std::move(group), std::move(queue));
  }
  static CommunicatorPtr connect() { return connect(WorldOptions{}); }
};

}  // namespace phalanx::mpi

// SPDX-License-Identifier: Apache-2.0
// Tests the backend as programs use it: processes with shared memory inside hosts and Gloo between them. The hosts are
// only names.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>

#include "framework/collectives/hierarchical/hierarchical_communicator.h"
#include "framework/collectives/testing/equivalence.h"
#include "framework/comm/backend.h"
#include "framework/testing/scratch.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

// Every host but the last has `per_host` ranks.
void compare(int ranks, int per_host) {
  const testing::Scratch folder;
  testing::run_ranks("shm", ranks, [&](const CommunicatorPtr& flat) {
    const int rank = flat->rank();
    ::setenv("PHALANX_HOST_KEY", ("host" + std::to_string(rank / per_host)).c_str(), 1);
    const Seconds timeout(60);
    auto store = make_file_store(folder.path("store"), ranks, timeout);
    const RankInfo rank_info{.rank = rank, .size = ranks, .local_rank = rank, .local_size = ranks};
    const auto world = Backends::Choice("hybrid").make({rank_info, store, timeout});
    EXPECT_NE(std::dynamic_pointer_cast<HierarchicalCommunicator>(world), nullptr);
    testing::expect_same_collectives(*flat, *world);
    world->barrier().wait();
  });
}

TEST(HybridBackend, GivesTheSameResultsAsSharedMemory) { compare(4, 2); }
TEST(HybridBackend, GivesTheSameResultsWithUnevenHosts) { compare(3, 2); }

}  // namespace
}  // namespace phalanx

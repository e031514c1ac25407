// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

namespace phalanx::testing {
namespace {

constexpr std::int64_t kElements = 20'000;

// Returns 0 if the sum over two processes is right.
int add_up(const ncclUniqueId& id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t comm = NCCL_COMM_NULL;
  if (ncclCommInitRankConfig(&comm, 2, id, rank, &config) != ncclSuccess) return 1;
  const at::Tensor tensor = at::full({kElements}, 1.0 + rank).to(at::Device(c10::kCUDA, 0));
  void* const data = tensor.data_ptr();
  if (ncclAllReduce(data, data, kElements, ncclFloat32, ncclSum, comm, nullptr) != ncclSuccess) return 2;
  const bool correct = at::equal(tensor.to(at::kCPU), at::full({kElements}, 3.0));
  return ncclCommAbort(comm) != ncclSuccess ? 4 : correct ? 0 : 3;
}

TEST(FakeNccl, ConnectsProcesses) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(add_up(id, 1));
  EXPECT_EQ(add_up(id, 0), 0);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace phalanx::testing

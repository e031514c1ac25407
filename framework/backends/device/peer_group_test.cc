// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/device/peer_group.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "framework/backends/device/device_communicator.h"
#include "framework/backends/device/peer_memory.h"
#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;

// CPU memory that a rank may be unable to open. `open` counts the openings of memory on all ranks together.
class BarredMemory final : public PeerMemory {
 public:
  BarredMemory(bool barred, std::atomic<int>& open) : barred_(barred), open_(open) {}

  at::Device device() const override { return at::kCPU; }
  at::Tensor allocate(std::int64_t bytes) override {
    ++allocated_;
    return at::zeros({bytes}, at::kByte);
  }
  void free(const at::Tensor&) override { open_when_given_back_ = open_; }
  std::string handle_of(const at::Tensor&) override { return "handle"; }
  at::Tensor open(const std::string&, std::int64_t bytes) override {
    if (barred_) throw CommError(CommError::Kind::kSystem, "access denied");
    ++open_;
    const at::Tensor memory = at::zeros({bytes}, at::kByte);
    return at::from_blob(memory.data_ptr(), {bytes}, [memory, &open = open_](void*) { --open; }, at::kByte);
  }

  int allocated() const { return allocated_; }
  std::optional<int> open_when_given_back() const { return open_when_given_back_; }

 private:
  bool barred_;
  std::atomic<int>& open_;
  int allocated_ = 0;
  std::optional<int> open_when_given_back_;
};

TEST(PeerGroup, FreesMemoryThatSomeRanksCannotOpen) {
  std::atomic<int> open{0};
  run_ranks("inproc", 3, [&](const CommunicatorPtr& host) {
    const auto memory = std::make_shared<BarredMemory>(host->rank() == 1, open);
    PeerGroup peers(memory);
    EXPECT_FALSE(peers.open_windows(*host));
    EXPECT_EQ(memory->open_when_given_back(), 0) << "memory is freed only after all ranks have closed it";
  });
  EXPECT_EQ(open.load(), 0);
}

TEST(PeerGroup, LeavesOperationsToTheHostIfMemoryCannotBeOpened) {
  std::atomic<int> open{0};
  run_ranks("inproc", 2, [&](const CommunicatorPtr& host) {
    const auto memory = std::make_shared<BarredMemory>(host->rank() == 1, open);
    DeviceCommunicator group(host, c10::kCPU, DeviceCommunicator::Paths{.peers = std::make_shared<PeerGroup>(memory)});
    for (int time = 0; time < 2; ++time) {
      const at::Tensor tensor = at::ones({3});
      group.all_reduce(tensor, Reduction::kSum).wait();
      EXPECT_EQ(tensor.sum().item<double>(), 6);
    }
    EXPECT_EQ(memory->allocated(), 1) << "once";
  });
}

TEST(PeerGroup, NeedsNoMemoryForOneRank) {
  std::atomic<int> open{0};
  run_ranks("inproc", 1, [&](const CommunicatorPtr& host) {
    const auto memory = std::make_shared<BarredMemory>(true, open);
    DeviceCommunicator group(host, c10::kCPU, DeviceCommunicator::Paths{.peers = std::make_shared<PeerGroup>(memory)});
    const at::Tensor all = at::zeros({3});
    group.all_gather(all, at::ones({3})).wait();
    EXPECT_EQ(all.sum().item<double>(), 3);
    group.all_reduce(all, Reduction::kMean).wait();
    EXPECT_EQ(all.sum().item<double>(), 3);
    EXPECT_EQ(memory->allocated(), 0);
  });
}

}  // namespace
}  // namespace phalanx

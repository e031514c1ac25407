#include "framework/backends/device/peer_group.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "framework/backends/device/peer_memory.h"
#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;

// Memory of the CPU that a rank may be unable to open. `open`: how often all ranks have memory open.
class BarredMemory final : public PeerMemory {
 public:
  BarredMemory(bool barred, std::atomic<int>& open) : barred_(barred), open_(open) {}

  at::Device device() const override { return at::kCPU; }
  at::Tensor allocate(std::int64_t bytes) override { return at::zeros({bytes}, at::kByte); }
  void give_back(const at::Tensor&) override { open_when_given_back_ = open_; }
  std::string handle_of(const at::Tensor&) override { return "handle"; }
  at::Tensor open(const std::string&, std::int64_t bytes) override {
    if (barred_) throw CommError(CommError::Kind::kSystem, "no way there");
    ++open_;
    const at::Tensor memory = allocate(bytes);
    return at::from_blob(
        memory.data_ptr(), {bytes}, [memory, &open = open_](void*) { --open; }, at::kByte);
  }

  std::optional<int> open_when_given_back() const { return open_when_given_back_; }

 private:
  bool barred_;
  std::atomic<int>& open_;
  std::optional<int> open_when_given_back_;
};

TEST(PeerGroup, GivesBackMemoryThatNotAllRanksCanOpen) {
  std::atomic<int> open{0};
  run_ranks("inproc", 3, [&](const CommunicatorPtr& host) {
    const auto memory = std::make_shared<BarredMemory>(host->rank() == 1, open);
    PeerGroup peers(memory);
    EXPECT_THAT([&] { peers.open_windows(*host); },
                ::testing::ThrowsMessage<CommError>(::testing::HasSubstr("on rank 1: no way there")));
    EXPECT_EQ(memory->open_when_given_back(), 0) << "once it is closed everywhere";
  });
  EXPECT_EQ(open.load(), 0);
}

}  // namespace
}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
// Tests that waits move messages themselves, without Gloo's thread, in the versions of Gloo in which they can.
#if !__has_include(<gloo/transport/tcp/socket.h>)
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "framework/backends/gloo/connect.h"
#include "framework/backends/gloo/device.h"
#include "framework/backends/gloo/transport.h"
#include "framework/base/descriptor.h"
#include "framework/comm/store/store.h"

namespace phalanx::gloo {
namespace {

namespace tcp = ::gloo::transport::tcp;

// Keeps the thread of a device busy from the constructor to the destructor.
class Occupied final : public tcp::Handler {
 public:
  explicit Occupied(tcp::Device& device) : device_(device), event_(::eventfd(1, EFD_CLOEXEC)) {
    device_.registerDescriptor(event_.get(), EPOLLIN, this);
    begun_.wait();
  }
  ~Occupied() override {
    end_.count_down();
    ended_.wait();
    device_.unregisterDescriptor(event_.get(), this);
  }

  void handleEvents(int) override {
    if (begun_.try_wait()) return;
    begun_.count_down();
    end_.wait();
    std::uint64_t count = 0;
    EXPECT_EQ(::read(event_.get(), &count, sizeof(count)), static_cast<ssize_t>(sizeof(count)));
    ended_.count_down();
  }

 private:
  tcp::Device& device_;
  Descriptor event_;
  std::latch begun_{1}, end_{1}, ended_{1};
};

// A rank of two, with a thread of Gloo of its own.
struct Rank {
  std::shared_ptr<tcp::Device> device = open_device();
  std::shared_ptr<Transport> transport{};
};

class Polling : public ::testing::Test {
 protected:
  Polling() {
    auto other = std::async(std::launch::async, [this] { return connect_rank(1); });
    ranks_.push_back(connect_rank(0));
    ranks_.push_back(other.get());
  }

  Rank connect_rank(int rank) {
    Rank one;
    const Member member{.group = "world",
                        .rank = rank,
                        .size = 2,
                        .timeout = Seconds(60),
                        .endpoint = {.host = "127.0.0.1", .secret = "a secret of the tests"}};
    one.transport = connect(member, one.device, exchange_through(*store_, member));
    return one;
  }

  // Returns the number that `rank` gets from the other one, or nothing if it does not come in time.
  std::optional<int> exchange(int rank, std::chrono::milliseconds timeout) {
    int own = rank + 1, others = 0;
    Buffer to(ranks_[rank].transport, &own, sizeof(own)), from(ranks_[rank].transport, &others, sizeof(others));
    from.recv(1 - rank, /*slot=*/1);
    to.send(1 - rank, /*slot=*/1);
    try {
      from.waitRecv(nullptr, timeout);
      to.waitSend(nullptr, timeout);
    } catch (const Absent&) {
      return std::nullopt;
    }
    return others;
  }

  StorePtr store_ = make_hash_store(Seconds(60));
  std::vector<Rank> ranks_;
};

// A wait polls for a fraction of a millisecond only, so the two ranks must meet in time. On a busy machine, this takes
// several attempts.
TEST_F(Polling, NeedsNoOtherThreadForAMessageThatComesSoon) {
  constexpr int kAttempts = 500;
  bool done = false;
  for (int attempt = 0; attempt < kAttempts && !done; ++attempt) {
    std::optional<Occupied> first(*ranks_[0].device), second(*ranks_[1].device);
    std::latch begin{2};
    const auto run = [&](int rank) {
      begin.arrive_and_wait();
      return exchange(rank, std::chrono::seconds(60));
    };
    auto other = std::async(std::launch::async, run, 1);
    auto own = std::async(std::launch::async, run, 0);
    const std::chrono::milliseconds soon(20);
    done = own.wait_for(soon) == std::future_status::ready && other.wait_for(soon) == std::future_status::ready;
    first.reset();  // from here on, Gloo's threads complete what was late
    second.reset();
    EXPECT_EQ(own.get(), 2);
    EXPECT_EQ(other.get(), 1);
  }
  EXPECT_TRUE(done);
}

// The threads of Gloo get the connections back after each wait that polled.
TEST_F(Polling, LeavesMessagesThatComeLateToGloosThread) {
  for (int i = 0; i < 3; ++i) {
    auto other = std::async(std::launch::async, [this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return exchange(1, std::chrono::seconds(60));
    });
    EXPECT_EQ(exchange(0, std::chrono::seconds(60)), 2);
    EXPECT_EQ(other.get(), 1);
  }
}

}  // namespace
}  // namespace phalanx::gloo

#endif

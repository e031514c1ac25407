// SPDX-License-Identifier: Apache-2.0
// Messages between devices by NCCL, when ranks are late, wrong or lost. The conformance suite has what all messages
// must do.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <c10/core/StreamGuard.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "framework/testing/fake_cuda/plugin_suite.h"
#include "framework/testing/fake_device/graph.h"

namespace phalanx::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr Seconds kLong{30};

int next(const Rank& rank) { return (rank.host->rank() + 1) % rank.host->size(); }
int previous(const Rank& rank) { return (rank.host->rank() + rank.host->size() - 1) % rank.host->size(); }

bool holds(const at::Tensor& tensor, double value) {
  return at::equal(tensor.to(at::kCPU), at::full({tensor.numel()}, value));
}

// Returns the largest message that the host's group has carried for this rank.
std::int64_t largest_on_host(const Rank& rank) {
  std::int64_t largest = 0;
  for (const auto& record : rank.host->recorder().records()) {
    if (record.call.op == Op::kSend && record.call.tag == kMaxAnyTag) {
      largest = std::max(largest, record.call.elements);
    }
  }
  return largest;
}

TEST_F(Plugin, MessagesGoFromDeviceToDevice) {
  const long before = nccl_calls("ncclSend");
  run(3, kLong, [](const Rank& rank) {
    const at::Tensor sent = rank.full(10'000, rank.host->rank()), received = rank.full(10'000, -1);
    Work recv = rank.group->recv(received, previous(rank), 4), send = rank.group->send(sent, next(rank), 4);
    recv.wait();
    send.wait();
    EXPECT_TRUE(holds(received, previous(rank)));
    EXPECT_LE(largest_on_host(rank), 128);  // bytes: of an id of NCCL, or of a header
  });
  EXPECT_EQ(nccl_calls("ncclSend"), before + 3);
}

// The device of rank 0 sends to rank 1 once rank 2 has received.
TEST_F(Plugin, AReceiveWaitsForTheSendersHostButNotForItsDevice) {
  constexpr auto kLate = milliseconds(600);
  run(3, kLong, [&](const Rank& rank) {
    const at::Tensor ones = rank.full(10, 1), received = rank.full(10, 0);
    const auto receive = [&] { rank.group->recv(received, 0).wait(); };
    const auto send_to = [&](int peer) { rank.group->send(ones, peer).wait(); };
    for (const bool connects : {true, false}) {
      rank.host->barrier().wait();
      const auto begin = Clock::now();
      if (rank.host->rank() == 2 && !connects) std::this_thread::sleep_for(kLate);
      if (rank.host->rank() > 0) {
        receive();
      } else {
        send_to(2);
        send_to(1);
      }
      if (!connects && rank.host->rank() < 2) {
        EXPECT_LT(Clock::now() - begin, kLate / 2);
      }
      EXPECT_TRUE(holds(rank.host->rank() > 0 ? received : ones, 1));
    }
    rank.host->barrier().wait();
  });
}

TEST_F(Plugin, PostingAndSendingDoNotBlockTheHostWhilePeersAreLate) {
  constexpr auto kLate = milliseconds(400);
  run(2, kLong, [&](const Rank& rank) {
    const at::Tensor sent = rank.full(1000, rank.host->rank()), received = rank.full(1000, -1);
    rank.host->barrier().wait();
    if (rank.host->rank() == 1) std::this_thread::sleep_for(kLate);
    const auto begin = Clock::now();
    Work recv = rank.group->recv(received, next(rank)), send = rank.group->send(sent, next(rank));
    EXPECT_LT(Clock::now() - begin, kLate / 2);
    recv.wait();
    send.wait();
    EXPECT_TRUE(holds(received, next(rank)));
  });
}

// As stages of a pipeline that send activations and gradients in another order than the others receive them.
TEST_F(Plugin, MessagesAreMatchedByTagsInWhateverOrderTheyAreReceived) {
  run(2, kLong, [](const Rank& rank) {
    constexpr int kTags = 12;
    std::vector<Work> sends, receives;
    std::vector<at::Tensor> received;
    for (int tag = 0; tag < kTags; ++tag) sends.push_back(rank.group->send(rank.full(50 + tag, tag), next(rank), tag));
    for (int i = 0; i < kTags; ++i) {
      const int tag = i * 5 % kTags;
      received.push_back(rank.full(50 + tag, -1));
      receives.push_back(rank.group->recv(received.back(), next(rank), tag));
      if (i % 3 == 0) receives.back().wait();
    }
    wait_all(receives);
    wait_all(sends);
    for (int i = 0; i < kTags; ++i) EXPECT_TRUE(holds(received[i], i * 5 % kTags)) << i;
  });
}

TEST_F(Plugin, ATensorMayBeFreedOnceItsSendHasBeenWaitedFor) {
  run(2, kLong, [](const Rank& rank) {
    for (int i = 0; i < 20; ++i) {
      at::Tensor sent = rank.full(1000, i);
      const at::Tensor received = rank.full(1000, -1);
      Work recv = rank.group->recv(received, next(rank)), send = rank.group->send(sent, next(rank));
      sent.reset();
      send.wait();
      EXPECT_NO_THROW(rank.full(1000, 77)) << "reuses the memory";
      recv.wait();
      EXPECT_TRUE(holds(received, i));
    }
  });
}

TEST_F(Plugin, AReceiveOfATagThatNeverComesNamesTheTagsThatCame) {
  run(2, Seconds(0.5), [](const Rank& rank) {
    if (rank.host->rank() == 0) {
      const at::Tensor sent = rank.full(4, 1);
      Work send = rank.group->send(sent, 1, 7);
      send.wait();
      rank.synchronize_device();
    } else {
      const at::Tensor received = rank.full(4, 0);
      const auto error = error_of([&] { rank.group->recv(received, 0, 8).wait(); });
      ASSERT_TRUE(error);
      EXPECT_THAT(error->what(), AllOf(HasSubstr("recv(from 0, tag 8)"), HasSubstr("came with tag 7")));
    }
  });
}

TEST_F(Plugin, AReceiverThatNeverComesEndsTheSendAfterTheTimeout) {
  run(2, Seconds(0.3), [](const Rank& rank) {
    const auto world = rank.host->split(0, rank.host->rank());
    if (rank.host->rank() == 0) {
      const at::Tensor sent = rank.full(4, 1);
      const auto error = error_of([&] { rank.group->send(sent, 1, 7).wait(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->kind(), CommError::Kind::kTimeout);
      EXPECT_THAT(error->what(), HasSubstr("send(to 1, tag 7)"));
      rank.synchronize_device();
    }
    world->barrier().wait();
  });
}

TEST_F(Plugin, AnAsynchronousErrorOfNcclEndsTheMessagesOfALink) {
  run(2, kLong, [](const Rank& rank) {
    const at::Tensor sent = rank.full(1000, 1), received = rank.full(1000, 0);
    if (rank.host->rank() == 0) rank.group->send(sent, 1).wait();
    if (rank.host->rank() == 1) rank.group->recv(received, 0).wait();
    rank.synchronize_device();
    rank.host->barrier().wait();
    if (rank.host->rank() == 0) {
      break_nccl(0, ncclRemoteError);  // as the sender in its link
      const auto error = error_of([&] { rank.group->send(sent, 1).synchronize(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->kind(), CommError::Kind::kPeerLost);
      EXPECT_THAT(error->what(), AllOf(HasSubstr("send(to 1"), HasSubstr("messages from rank 0 to 1 of world")));
      EXPECT_TRUE(error_of([&] { rank.group->send(sent, 1).wait(); })) << "the link is broken";
    }
    rank.host->barrier().wait();
  });
}

// As for other operations of devices, a thread notes their end.
TEST_F(Plugin, MessagesAreInTheRecordOfTheWorldUntilTheDeviceHasFinishedThem) {
  run(2, kLong, [](const Rank& rank) {
    const auto state = [&] {
      for (const auto& record : rank.host->recorder().records()) {
        if (record.call.op == Op::kRecv && record.call.tag == 9) return record.state;
      }
      throw std::logic_error("the receive is not in the record");
    };
    const at::Tensor received = rank.full(10, 0);
    Work recv = rank.group->recv(received, next(rank), 9);
    EXPECT_EQ(state(), FlightRecorder::State::kLaunched);
    rank.host->barrier().wait();
    Work send = rank.group->send(rank.full(10, 1), next(rank), 9);
    recv.wait();
    send.wait();
    const auto end = Clock::now() + std::chrono::seconds(20);
    while (state() != FlightRecorder::State::kDone && Clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(state(), FlightRecorder::State::kDone);
  });
}

TEST_F(Plugin, AMessageToItselfGoesThroughTheHost) {
  run(2, kLong, [](const Rank& rank) {
    const at::Tensor received = rank.full(10, 0);
    Work send = rank.group->send(rank.full(10, 3), rank.host->rank());
    rank.group->recv(received, rank.host->rank()).wait();
    send.wait();
    EXPECT_TRUE(holds(received, 3));
  });
}

TEST_F(Plugin, SplitGroupsHaveMessagesOfTheirOwn) {
  run(4, kLong, [](const Rank& rank) {
    const auto half = rank.group->split(rank.host->rank() % 2, rank.host->rank());
    const at::Tensor in_half = rank.full(10, -1), in_world = rank.full(10, -1);
    Work works[] = {half->send(rank.full(10, 100 + rank.host->rank()), 1 - half->rank(), 1),
                    rank.group->send(rank.full(10, rank.host->rank()), (rank.host->rank() + 2) % 4, 1),
                    rank.group->recv(in_world, (rank.host->rank() + 2) % 4, 1),
                    half->recv(in_half, 1 - half->rank(), 1)};
    for (auto& work : works) work.wait();
    EXPECT_TRUE(holds(in_half, 100 + (rank.host->rank() + 2) % 4));
    EXPECT_TRUE(holds(in_world, (rank.host->rank() + 2) % 4));
  });
}

TEST_F(Plugin, MessagesCannotBeRecordedInAGraph) {
  run(2, kLong, [](const Rank& rank) {
    if (rank.host->rank() == 0) {
      const at::Tensor tensor = rank.full(10, 1);
      FakeGraph graph;
      graph.capture_begin();
      EXPECT_THAT([&] { (void)rank.group->send(tensor, 1); },
                  ThrowsMessage<std::invalid_argument>(HasSubstr("cannot be recorded in a graph")));
      graph.capture_end();
    }
    rank.host->barrier().wait();
  });
}

}  // namespace
}  // namespace phalanx::testing

// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/recording/replay.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/collectives/recording/comparison.h"
#include "framework/collectives/recording/recording_communicator.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/testing/worlds.h"

namespace phalanx::recording {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int kRanks = 3;

// The tensors that a rank received, in order.
using Received = std::vector<at::Tensor>;
using Program = std::function<Received(const CommunicatorPtr& world)>;

at::Tensor numbers(std::int64_t count, double first) { return at::arange(first, first + count, at::kFloat); }

// Calls every operation.
Received call_everything(const CommunicatorPtr& world) {
  const int rank = world->rank();
  Received received;
  const auto keep = [&](const at::Tensor& tensor) { received.push_back(tensor.clone()); };
  at::Tensor one = numbers(4, rank), all = at::zeros({4 * kRanks}), pieces = numbers(4 * kRanks, 10 * rank);
  world->broadcast(one, 1).wait();
  keep(one);
  world->reduce(one, Reduction::kSum, 2).wait();
  if (rank == 2) keep(one);
  Work mean = world->all_reduce(one, Reduction::kMean);
  Work next = world->all_gather(all, one);  // depends on an operation that is not waited for
  next.wait();
  mean.wait();
  keep(one);
  keep(all);
  world->reduce_scatter(one, pieces, Reduction::kMax).wait();
  keep(one);
  world->gather(all, one, 0).wait();
  if (rank == 0) keep(all);
  world->scatter(one, pieces, 1).wait();
  keep(one);
  world->all_to_all(all, pieces).wait();
  keep(all);
  std::vector<Work> messages;
  at::Tensor from_before = at::zeros({4});
  messages.push_back(world->send(one, (rank + 1) % kRanks, 3));
  messages.push_back(world->recv(from_before, (rank + kRanks - 1) % kRanks, 3));
  wait_all(messages);
  keep(from_before);
  world->barrier().wait();
  const auto group = world->split(rank == 2 ? -1 : 0, -rank);
  if (group) {
    group->all_reduce(one, Reduction::kSum).wait();
    keep(one);
  }
  world->run({.op = Op::kCustom}, [&] { world->all_reduce(one, Reduction::kSum).wait(); }).wait();
  keep(one);
  return received;
}

class ReplayedRanks : public ::testing::Test {
 protected:
  ReplayedRanks() : folder_(::testing::TempDir() + "replayed_ranks_" + std::to_string(count_++)) {
    std::filesystem::remove_all(folder_);
  }

  // Records a program, and returns what each rank received.
  std::vector<Received> record_ranks(const Program& program) {
    std::vector<Received> received(kRanks);
    testing::run_ranks("inproc", kRanks, [&](const CommunicatorPtr& world) {
      const auto recorder = std::make_shared<Recorder>(
          folder_, Header{.rank = world->rank(), .ranks = kRanks, .backend = "inproc", .config = "{}"});
      received[static_cast<std::size_t>(world->rank())] = program(record(world, recorder));
      recorder->end_run(0, 1);
    });
    return received;
  }

  std::shared_ptr<Replay> open(int rank) const {
    return std::make_shared<Replay>(std::make_unique<Recording>(folder_, rank));
  }

  std::string folder_;

 private:
  static inline int count_ = 0;
};

TEST_F(ReplayedRanks, ReceiveWhatTheyReceived) {
  const auto recorded = record_ranks(call_everything);
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto replay = open(rank);
    const Received again = call_everything(replay->world());
    replay->end_run(1);
    const Received& first = recorded[static_cast<std::size_t>(rank)];
    ASSERT_EQ(again.size(), first.size());
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(at::equal(again[i], first[i])) << rank << ": " << i;
    EXPECT_GE(replay->operations(), 12);
  }
}

TEST_F(ReplayedRanks, StopAtTheFirstOtherInput) {
  const auto add_to = [](double more) {
    return [more](const CommunicatorPtr& world) {
      at::Tensor sum = numbers(4, world->rank());
      world->all_reduce(sum, Reduction::kSum).wait();
      sum[2] += more;
      world->all_reduce(sum, Reduction::kSum).wait();
      return Received{};
    };
  };
  record_ranks(add_to(0));
  const auto replay = open(1);
  EXPECT_THAT([&] { add_to(1)(replay->world()); },
              ThrowsMessage<ReplayDifference>(
                  AllOf(HasSubstr("all_reduce(sum) of 4 Float, operation 2 of group world"), HasSubstr("other bits"))));
}

TEST_F(ReplayedRanks, NameTheParametersThatDiffer) {
  // Each rank has its own tensor, whose pieces it names before it calls the operation.
  const auto program = [](const CommunicatorPtr& world, NamedMemory& memory, double last) {
    at::Tensor sum = numbers(4, world->rank());
    sum[3] = last;
    const auto* begin = static_cast<const char*>(sum.const_data_ptr());
    memory.add("weight", begin, 8);
    memory.add("bias", begin + 8, 8);
    world->all_reduce(sum, Reduction::kSum).wait();
  };
  testing::run_ranks("inproc", kRanks, [&](const CommunicatorPtr& world) {
    const auto recorder =
        std::make_shared<Recorder>(folder_, Header{.rank = world->rank(), .ranks = kRanks, .config = "{}"});
    program(record(world, recorder), recorder->memory(), 1);
    recorder->end_run(0, 1);
  });
  const auto replay = open(2);
  EXPECT_THAT([&] { program(replay->world(), replay->memory(), 2); },
              ThrowsMessage<ReplayDifference>(HasSubstr("other bits in bias, of the bucket weight to bias")));
}

// Records a program that reduces gradients, which differ with the run, and says in which parameter they do.
TEST_F(ReplayedRanks, CompareTheirRunWithAnother) {
  const auto program = [](const CommunicatorPtr& world, NamedMemory& memory, std::function<double(int)> last) {
    at::Tensor sum = numbers(4, world->rank());
    const auto* begin = static_cast<const char*>(sum.const_data_ptr());
    memory.add("the gradient of weight", begin, 8);
    memory.add("the gradient of bias", begin + 8, 8);
    world->all_reduce(sum, Reduction::kSum).wait();
    sum.copy_(numbers(4, world->rank()));
    sum[3] = last(world->rank());
    world->all_reduce(sum, Reduction::kSum).wait();
    return sum;
  };
  const auto record_to = [&](const std::string& folder, const std::function<double(int)>& last) {
    testing::run_ranks("inproc", kRanks, [&](const CommunicatorPtr& world) {
      const auto recorder =
          std::make_shared<Recorder>(folder, Header{.rank = world->rank(), .ranks = kRanks, .config = "{}"});
      program(record(world, recorder), recorder->memory(), last);
      recorder->end_run(0, 1);
    });
  };
  const std::string other = folder_ + "_other";
  std::filesystem::remove_all(other);
  const auto first = [](int) { return 1.0; };
  record_to(folder_, first);
  record_to(other, [](int rank) { return rank == 1 ? 2.0 : 1.0; });
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto replay = open(rank);
    replay->compare_with(std::make_unique<Recording>(other, rank));
    const at::Tensor sum = program(replay->world(), replay->memory(), first);
    EXPECT_EQ(sum[3].item<double>(), 3) << "the replay goes on as recorded";
    EXPECT_THAT(replay->difference_from_other(),
                AllOf(HasSubstr(rank == 1 ? "the input of all_reduce(sum)" : "the result of all_reduce(sum)"),
                      HasSubstr("operation 2 of group world"),
                      HasSubstr("other bits in the gradient of bias, of the bucket weight to bias: ")));
    replay->end_run(1);
  }
  const auto same = open(0);
  same->compare_with(std::make_unique<Recording>(folder_, 0));
  program(same->world(), same->memory(), first);
  EXPECT_EQ(same->difference_from_other(), "");
}

TEST_F(ReplayedRanks, AreEqualIfOnlyAMeasurementIsLonger) {
  const auto gather = [](std::int64_t count, bool measured) {
    return [count, measured](const CommunicatorPtr& world) {
      std::optional<MeasuredInputs> mark;
      if (measured) mark.emplace();
      world->all_gather(at::zeros({count * kRanks}), numbers(count, 0)).wait();
      return Received{};
    };
  };
  std::vector<std::string> folders;
  for (const auto& program : {gather(3, true), gather(4, true), gather(4, false)}) {
    folder_ += "_next";
    std::filesystem::remove_all(folder_);
    record_ranks(program);
    folders.push_back(folder_);
  }
  const Recording first(folders[0], 0), longer(folders[1], 0), other(folders[2], 0);
  EXPECT_FALSE(compare(first, longer));
  ASSERT_TRUE(compare(first, other));
  EXPECT_EQ(compare(first, other)->kind, OperationDifference::Kind::kCall);
}

TEST_F(ReplayedRanks, StopAtAnotherOperation) {
  record_ranks([](const CommunicatorPtr& world) {
    world->barrier().wait();
    return Received{};
  });
  const auto replay = open(0);
  at::Tensor one = numbers(1, 0);
  EXPECT_THAT([&] { replay->world()->broadcast(one, 0).wait(); },
              ThrowsMessage<ReplayDifference>(AllOf(HasSubstr("it asks for broadcast"), HasSubstr("barrier"))));
  EXPECT_THAT(replay->difference(), HasSubstr("it asks for broadcast"));
}

TEST_F(ReplayedRanks, MustCallEverythingThatWasRecorded) {
  record_ranks([](const CommunicatorPtr& world) {
    world->barrier().wait();
    return Received{};
  });
  EXPECT_THAT([&] { open(0)->end_run(1); },
              ThrowsMessage<ReplayDifference>(HasSubstr("the recording goes on with barrier")));
}

TEST_F(ReplayedRanks, MustEndWithTheRecordedParameters) {
  record_ranks([](const CommunicatorPtr&) { return Received{}; });
  EXPECT_THAT([&] { open(0)->end_run(2); },
              ThrowsMessage<ReplayDifference>(HasSubstr("the parameters have other bits")));
}

TEST_F(ReplayedRanks, GetRecordedMeasurementsInPlaceOfTheirOwn) {
  const auto measure = [](double own) {
    return [own](const CommunicatorPtr& world) {
      at::Tensor time = at::full({1}, own + world->rank());
      const MeasuredInputs measured;
      world->broadcast(time, 0).wait();
      return Received{time};
    };
  };
  record_ranks(measure(5));
  const Received again = measure(7)(open(0)->world());
  EXPECT_EQ(again[0].item<float>(), 5);
}

TEST_F(ReplayedRanks, SeeTheErrorsThatTheySaw) {
  const auto mismatch = [](const CommunicatorPtr& world) {
    at::Tensor some = at::zeros({world->rank() == 0 ? 2 : 3});
    EXPECT_THROW(world->all_reduce(some, Reduction::kSum).wait(), CommError);
    return Received{};
  };
  record_ranks(mismatch);
  const auto replay = open(1);
  mismatch(replay->world());
  replay->end_run(1);
}

struct PlannedError {};

// Receives two messages from rank 1, of which it abandons the first, although it has arrived.
Received abandon_the_first(const CommunicatorPtr& world) {
  at::Tensor first = numbers(4, world->rank()), second = numbers(4, 10 + world->rank());
  std::vector<Work> sent;
  if (world->rank() == 1) {
    sent.push_back(world->send(first, 0, 3));
    sent.push_back(world->send(second, 0, 3));
  }
  world->barrier().wait();
  wait_all(sent);
  if (world->rank() != 0) return {};
  try {
    const Work abandoned = world->recv(first, 1, 3);
    throw PlannedError();
  } catch (const PlannedError&) {
  }
  world->recv(second, 1, 3).wait();
  return {second};
}

TEST_F(ReplayedRanks, MayAbandonAReceiveAsTheRecordedRankDid) {
  const auto recorded = record_ranks(abandon_the_first);
  const auto replay = open(0);
  const Received again = abandon_the_first(replay->world());
  replay->end_run(1);
  EXPECT_EQ(replay->difference(), "");
  EXPECT_EQ(recorded[0].at(0)[0].item<float>(), 11);
  EXPECT_TRUE(at::equal(again.at(0), recorded[0].at(0)));
}

TEST_F(ReplayedRanks, MustNotWaitForAReceiveThatTheRecordedRankHasAbandoned) {
  record_ranks(abandon_the_first);
  const auto replay = open(0);
  at::Tensor message = at::zeros({4});
  replay->world()->barrier().wait();
  Work work = replay->world()->recv(message, 1, 3);
  EXPECT_EQ(replay->difference(), "");
  EXPECT_THAT([&] { work.wait(); }, ThrowsMessage<ReplayDifference>(AllOf(HasSubstr("it waits for recv"),
                                                                          HasSubstr("but the recorded rank did not"))));
}

TEST_F(ReplayedRanks, GetTheErrorOfAReceiveWhereTheyWaitForIt) {
  const auto receive = [](const CommunicatorPtr& world) {
    at::Tensor message = at::zeros({4});
    if (world->rank() != 0) return Received{};  // leaves the group
    Work work = world->recv(message, 1, 3);
    EXPECT_THROW(work.wait(), CommError);
    return Received{};
  };
  record_ranks(receive);
  const auto replay = open(0);
  receive(replay->world());
  EXPECT_EQ(replay->difference(), "");
  replay->end_run(1);
}

TEST_F(ReplayedRanks, OfAKilledRankSayWhereItsRecordingEnds) {
  const auto twice = [](const CommunicatorPtr& world) {
    world->barrier().wait();
    world->barrier().wait();
    return Received{};
  };
  record_ranks(twice);
  const std::string file = file_of(folder_, 0);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - sizeof(EntryHead) - 8 - 10);
  EXPECT_THAT([&] { twice(open(0)->world()); }, ThrowsMessage<RecordingEnded>(HasSubstr("waiting for barrier")));
}

TEST_F(ReplayedRanks, ShareNoMemoryThatARecordingCannotSee) {
  record_ranks([](const CommunicatorPtr& world) {
    EXPECT_FALSE(world->shares_memory());
    EXPECT_THROW((void)world->allocate_shared({1}, at::kFloat), ConfigError);
    EXPECT_EQ(world->allocate({5}, at::kFloat).numel(), 5);
    return Received{};
  });
  EXPECT_FALSE(open(0)->world()->shares_memory());
}

}  // namespace
}  // namespace phalanx::recording

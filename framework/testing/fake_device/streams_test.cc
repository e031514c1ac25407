// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_device/streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace phalanx::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class StreamsTest : public ::testing::Test {
 protected:
  static std::vector<Access> reads(const int& cell) { return {access(cell, false)}; }
  static std::vector<Access> writes(const int& cell) { return {access(cell, true)}; }
  static Access access(const int& cell, bool writes) {
    return {.begin = reinterpret_cast<const std::byte*>(&cell), .bytes = sizeof(int), .writes = writes};
  }
  void run(const char* name, int stream, std::vector<Access> accesses, std::function<void()> body = [] {}) {
    streams_.launch({.name = name, .stream = stream, .accesses = std::move(accesses)}, std::move(body));
  }

  // Returns streams that are never destroyed, as Streams::global(): their thread runs until the process ends.
  static Streams& new_streams() {
    static auto& all = *new std::vector<std::unique_ptr<Streams>>;
    return *all.emplace_back(std::make_unique<Streams>());
  }

  Streams& streams_ = new_streams();
  const int first_ = streams_.number_of(0, 0), second_ = streams_.number_of(0, 1), third_ = streams_.number_of(1, 0);
  int cell_ = 0, other_ = 0;
};

TEST_F(StreamsTest, ReportARaceWithBothOperatorsAndStreams) {
  run("fill", first_, writes(cell_));
  EXPECT_THAT([&] { run("add", second_, reads(cell_)); },
              ThrowsMessage<MissingWait>(AllOf(HasSubstr("add on stream 1 of device 0 reads memory that fill on the "
                                                         "default stream of device 0 writes"),
                                               HasSubstr("record_stream"))));
}

TEST_F(StreamsTest, AllowReadersBesideEachOther) {
  run("sum", first_, reads(cell_));
  run("max", second_, reads(cell_));
  EXPECT_THROW(run("fill", second_, writes(cell_)), MissingWait);  // sum may still be reading
}

TEST_F(StreamsTest, OrderWorkByEvents) {
  run("fill", first_, writes(cell_));
  const auto event = streams_.record(first_);
  run("later", first_, writes(other_));
  streams_.wait(second_, event);
  run("add", second_, writes(cell_));
  EXPECT_THROW(run("sum", second_, reads(other_)), MissingWait);  // the event was recorded before it was written
}

TEST_F(StreamsTest, PassOnWhatAnEventOfAThirdStreamKnows) {
  run("fill", first_, writes(cell_));
  streams_.wait(second_, streams_.record(first_));
  streams_.wait(third_, streams_.record(second_));
  EXPECT_NO_THROW(run("add", third_, writes(cell_)));
}

TEST_F(StreamsTest, LetTheHostOrderWork) {
  run("fill", first_, writes(cell_));
  streams_.synchronize(first_);
  EXPECT_NO_THROW(run("add", second_, writes(cell_)));
  run("fill", first_, writes(other_));
  EXPECT_TRUE(streams_.query(streams_.record(first_)));
  EXPECT_NO_THROW(run("add", third_, writes(other_)));
}

TEST_F(StreamsTest, TellBytesApart) {
  std::array<int, 3> cells{};
  run("fill", first_, {{reinterpret_cast<std::byte*>(cells.data()), 2 * sizeof(int), true}});
  EXPECT_NO_THROW(run("add", second_, writes(cells[2])));
  EXPECT_THROW(run("add", second_, writes(cells[1])), MissingWait);
  EXPECT_THROW(run("sum", second_, {{reinterpret_cast<std::byte*>(cells.data()), sizeof(cells), false}}), MissingWait);
}

TEST_F(StreamsTest, ForgetTheAccessesOfAStream) {
  run("fill", first_, writes(cell_));
  run("sum", third_, reads(other_));
  streams_.forget(reinterpret_cast<std::byte*>(&cell_), sizeof(cell_), first_);
  EXPECT_NO_THROW(run("add", second_, writes(cell_)));
}

TEST_F(StreamsTest, LeaveLaterWorkPendingUntilItIsWaitedFor) {
  streams_.launch_later({.name = "copy", .stream = first_, .accesses = {}}, [&] { cell_ = 1; });
  EXPECT_EQ(cell_, 0);
  const auto event = streams_.record(first_);
  streams_.wait(second_, event);
  run("add", second_, {}, [&] { other_ = cell_ + 1; });
  EXPECT_EQ(other_, 2);
}

TEST_F(StreamsTest, RunWorkBehindAPolledOperationOnceThatIsComplete) {
  std::atomic<bool> complete = false;
  streams_.launch_polled({.name = "all_reduce", .stream = first_, .accesses = {}}, [&] { return complete.load(); });
  run("divide", first_, {}, [&] { cell_ = 7; });
  streams_.wait(second_, streams_.record(first_));
  const auto event = streams_.record(second_);
  EXPECT_FALSE(streams_.query(event));
  EXPECT_FALSE(streams_.is_idle(first_));
  complete = true;
  streams_.synchronize(event);
  EXPECT_EQ(cell_, 7);
}

TEST_F(StreamsTest, RethrowWhatABodyThrewLater) {
  streams_.launch_later({.name = "copy", .stream = first_, .accesses = {}}, [] { throw std::runtime_error("broken"); });
  EXPECT_THAT([&] { streams_.synchronize(first_); }, ThrowsMessage<std::runtime_error>("broken"));
}

// A program for three streams: each operator computes a cell from two others. Events and waits of the host are at
// random places, so most programs lack some.
class RandomProgram {
 public:
  static constexpr int kStreams = 3, kCells = 4, kSteps = 16;

  explicit RandomProgram(unsigned seed) {
    std::mt19937 dice(seed);
    const auto below = [&](int limit) { return static_cast<int>(dice() % static_cast<unsigned>(limit)); };
    for (int i = 0; i < kSteps; ++i) {
      steps_.push_back({.kind = below(8),
                        .stream = below(kStreams),
                        .other = below(kStreams),
                        .to = below(kCells),
                        .left = below(kCells),
                        .right = below(kCells)});
    }
  }

  using Cells = std::array<unsigned, kCells>;

  // Runs the program on the streams 0, 1, 2. `checked` says if its accesses are compared.
  Cells run(Streams& streams, bool checked) const {
    Cells cells{1, 2, 3, 4};
    const auto access = [&](int cell, bool writes) {
      return Access{reinterpret_cast<const std::byte*>(&cells[static_cast<std::size_t>(cell)]), sizeof(unsigned),
                    writes};
    };
    for (const Step& step : steps_) {
      if (step.kind < 4) {
        streams.wait(step.stream, streams.record(step.other));
      } else if (step.kind == 4) {
        streams.synchronize(step.stream);
      } else {
        Streams::Launch launch{.name = "compute", .stream = step.stream, .accesses = {}};
        if (checked) launch.accesses = {access(step.left, false), access(step.right, false), access(step.to, true)};
        streams.launch(launch, [&cells, step] {
          auto& to = cells[static_cast<std::size_t>(step.to)];
          to = 3 * cells[static_cast<std::size_t>(step.left)] + 5 * cells[static_cast<std::size_t>(step.right)] + to;
        });
      }
    }
    for (int stream = 0; stream < kStreams; ++stream) streams.synchronize(stream);
    return cells;
  }

 private:
  struct Step {
    int kind, stream, other, to, left, right;
  };
  std::vector<Step> steps_;
};

// Streams that have the numbers 0, 1, 2.
Streams& fresh(Streams& streams) {
  for (int i = 0; i < RandomProgram::kStreams; ++i) streams.number_of(0, i);
  return streams;
}

// Checks the checker: a program that it accepts computes the same in every order, and one that computes something else
// in some order is refused.
TEST(RandomPrograms, ComputeTheSameInEveryOrderExactlyIfNoneLacksAWait) {
  int accepted = 0, refused = 0, differing = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    const RandomProgram program(seed);
    bool races = false;
    RandomProgram::Cells expected{};
    {
      Streams streams;
      expected = program.run(fresh(streams), false);
    }
    try {
      Streams streams;
      program.run(fresh(streams), true);
    } catch (const MissingWait&) {
      races = true;
    }
    bool differs = false;
    for (std::uint64_t order = 0; order < 12; ++order) {
      Streams streams;
      fresh(streams).set_mode(Streams::Mode::kDeferred, order);
      differs |= program.run(streams, false) != expected;
    }
    EXPECT_FALSE(differs && !races) << "program " << seed << " lacks a wait, but was accepted";
    accepted += races ? 0 : 1;
    refused += races ? 1 : 0;
    differing += differs ? 1 : 0;
  }
  EXPECT_GT(accepted, 30);
  EXPECT_GT(differing, refused / 2);  // a random order shows most of the races
}

}  // namespace
}  // namespace phalanx::testing

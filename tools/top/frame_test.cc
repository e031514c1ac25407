// SPDX-License-Identifier: Apache-2.0
#include "tools/top/frame.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/base/text.h"

namespace phalanx {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

JobState job(int ranks) {
  JobState state{.source = "runs/first",
                 .name = "digits",
                 .ranks = ranks,
                 .step = 250,
                 .planned_steps = 1000,
                 .epoch = 1,
                 .seconds = 30,
                 .samples_per_second = 12345,
                 .learning_rate = 0.02,
                 .metrics = {{"train/loss", 0.41}, {"test/accuracy", 0.9}},
                 .measured_at = 1000};
  state.times.steps = 1;
  for (int rank = 0; rank < ranks; ++rank) {
    state.times.ranks.push_back({0.0001, 0.001, 0.002 + 0.0001 * rank, 0.0005, 0.0002, 0.00005});
  }
  return state;
}

std::vector<std::string> frame(const JobState& state, int columns = 100, int rows = 0) {
  return draw_frame(state, {.columns = columns, .rows = rows}, 1002);
}

TEST(Frame, ShowsTheStateOfAJob) {
  EXPECT_THAT(
      frame(job(2)),
      ElementsAre("digits  2 ranks  measured 2 s ago  runs/first",
                  "step 250/1000  epoch 2   25 %  █████░░░░░░░░░░░░░░░  1:30 left  0:30 so far",
                  "12345 samples/s  train/loss 0.41  test/accuracy 0.9  learning rate 0.02",
                  "The ranks are balanced: their own work differs by less than a tenth.", "",
                  "rank    own work      data   forward  backward     comm.    update     hooks",
                  StartsWith("0        3.30 ms    100 us   1.00 ms   2.00 ms    500 us    200 us   50.0 us  dff"),
                  StartsWith("1        3.40 ms    100 us   1.00 ms   2.10 ms    500 us    200 us   50.0 us  dff")));
}

TEST(Frame, NamesTheStraggler) {
  auto state = job(2);
  state.times.ranks[1][2] = 0.01;
  EXPECT_THAT(frame(state), Contains(StartsWith("Rank 1 is the straggler: its own work takes ")));
}

TEST(Frame, FitsOnAnyScreen) {
  auto state = job(64);
  state.notes = {"rank 0 has waited 20 s in all_reduce #419 of world for rank 1", std::string(300, 'x')};
  state.name = std::string(150, 'y');
  for (int columns = 1; columns <= 200; columns += 7) {
    for (int rows = 1; rows <= 90; rows += 8) {
      const auto lines = frame(state, columns, rows);
      EXPECT_LE(lines.size(), static_cast<std::size_t>(rows));
      for (const auto& line : lines) EXPECT_LE(columns_of(line), static_cast<std::size_t>(columns)) << line;
    }
  }
}

TEST(Frame, ShowsTheRanksWithTheMostWorkIfNotAllFit) {
  const auto lines = frame(job(64), 100, 16);
  ASSERT_THAT(lines, SizeIs(16));
  EXPECT_THAT(lines, Contains(StartsWith("63 ")));
  EXPECT_THAT(lines, Each(Not(StartsWith("0 "))));
  EXPECT_THAT(lines.back(), StartsWith("and 55 more, with 3.30 ms to "));
}

TEST(Frame, ADeadJobSaysSo) {
  auto state = job(2);
  state.phase = JobPhase::kDied;
  EXPECT_THAT(frame(state)[0], HasSubstr("has died, measured 2 s ago"));
  state.phase = JobPhase::kEnded;
  EXPECT_THAT(frame(state)[0], HasSubstr("has ended"));
}

TEST(Frame, AJobWithoutMeasurementsHasNoRanks) {
  EXPECT_THAT(frame({.source = "runs/first", .name = "digits", .ranks = 4}), SizeIs(3));
}

TEST(Frame, HasControlCharactersOnlyWithColors) {
  const auto has_escape = [](const std::string& line) { return line.find('\033') != std::string::npos; };
  EXPECT_TRUE(std::ranges::none_of(frame(job(2)), has_escape));
  EXPECT_TRUE(std::ranges::any_of(draw_frame(job(2), {.columns = 80, .colors = true}, 1002), has_escape));
}

}  // namespace
}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/hang/explain.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using Process = RankPicture::Process;

constexpr double kNow = 1000;

PicturedOperation operation(const std::string& call, std::uint64_t sequence, const std::string& state,
                            double seconds = 20) {
  const double started = kNow - seconds;
  return {.number = sequence,
          .sequence = sequence,
          .group = "world",
          .op = call.substr(0, call.find('(')),
          .call = call,
          .state = state,
          .launched = started,
          .started = started,
          .finished = state == "done" ? started + 0.1 : 0};
}

RankPicture rank_in(int rank, PicturedOperation current) {
  return {.rank = rank,
          .host = "vm",
          .process = 100 + rank,
          .state = Process::kRuns,
          .taken = kNow,
          .activity = "update",
          .activity_since = kNow - 21,
          .step = 11,
          .operations = {std::move(current)}};
}

const std::string kSum = "all_reduce(sum) of 7 Float";

// Returns the picture of 4 ranks, all of which except `late` wait in the same operation for 20 s.
JobPicture all_but(RankPicture late) {
  JobPicture job{.size = 4, .taken = kNow};
  for (int rank = 0; rank < 4; ++rank) {
    job.ranks.push_back(rank == late.rank ? late : rank_in(rank, operation(kSum, 8, "running")));
  }
  return job;
}

RankPicture late(int rank, const std::string& activity) {
  auto picture = rank_in(rank, operation(kSum, 7, "done", 25));
  picture.activity = activity;
  return picture;
}

constexpr const char* kWait =
    "ranks 0, 1, 3 have waited 20 s in all_reduce #8 of world (all_reduce(sum) of 7 Float) "
    "for rank 2, which has not come: ";

TEST(Explain, NamesTheRankThatLoadsDataAndWhatItReads) {
  auto loads = late(2, "loading data");
  loads.dataset = "mnist";
  loads.blocked_in = "read of /data/images";
  EXPECT_EQ(explain(all_but(loads)), kWait + std::string("it has been loading data of step 12 for 21 s (dataset mnist, "
                                                         "blocked in read of /data/images, process 102 on vm)"));
}

TEST(Explain, NamesTheProcessThatIsStopped) {
  auto stopped = late(2, "forward");
  stopped.state = Process::kStopped;
  EXPECT_EQ(explain(all_but(stopped)),
            kWait + std::string("its process 102 on vm is stopped (SIGSTOP), in forward of step 12"));
}

TEST(Explain, NamesAStoppedRankEvenIfItIsInAnOperation) {
  auto stopped = rank_in(2, operation(kSum, 8, "running"));
  stopped.state = Process::kStopped;
  EXPECT_NE(explain(all_but(stopped)).find("for rank 2, which has not come: its process 102 on vm is stopped"),
            std::string::npos);
}

TEST(Explain, NamesTheProcessThatIsGone) {
  auto gone = late(2, "forward");
  gone.state = Process::kGone;
  EXPECT_EQ(explain(all_but(gone)), kWait + std::string("its process 102 on vm is gone"));
}

TEST(Explain, SaysOfWhichRanksNothingIsKnown) {
  auto job = all_but(late(2, "forward"));
  std::erase_if(job.ranks, [](const auto& rank) { return rank.rank == 2; });
  EXPECT_EQ(explain(job),
            kWait + std::string("nothing is known of it: it has ended, or its host does not share the run "
                                "folder"));
}

TEST(Explain, ListsSeveralRanks) {
  auto job = all_but(late(2, "forward"));
  job.ranks[0] = late(0, "backward");
  EXPECT_EQ(
      explain(job),
      "ranks 1, 3 have waited 20 s in all_reduce #8 of world (all_reduce(sum) of 7 Float) for ranks 0, 2, which "
      "have not come: rank 0: it has been in backward of step 12 for 21 s (process 100 on vm); rank 2: it has been "
      "in forward of step 12 for 21 s (process 102 on vm)");
}

TEST(Explain, NamesTheBucket) {
  auto job = all_but(late(2, "backward"));
  for (auto& rank : job.ranks) rank.operations.back().what = "bucket 1 of 2: fc2.bias to conv1.weight";
  EXPECT_EQ(explain(job).find("ranks 0, 1, 3 have waited 20 s in all_reduce #8 of world (bucket 1 of 2: fc2.bias to "
                              "conv1.weight) for rank 2"),
            0U);
}

TEST(Explain, CountsAnOperationThatHasJustFailed) {
  auto job = all_but(late(2, "forward"));
  for (auto& rank : job.ranks) {
    if (rank.rank != 2) rank.operations.back().state = "failed";
  }
  EXPECT_EQ(explain(job).find(kWait), 0U);
}

TEST(Explain, NamesTheFirstOperationInWhichRanksDiffer) {
  auto job = all_but(late(2, "update"));
  for (auto& rank : job.ranks) {
    rank.operations = {operation(kSum, 7, "done", 25), operation("all_reduce(sum) of 9 Float", 8, "running")};
  }
  job.ranks[1].operations[1] = operation("barrier", 8, "running");
  job.ranks[1].operations[1].place = "train.cc:12";
  const auto difference = first_difference(job);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->sequence, 8U);
  EXPECT_EQ(explain(job),
            "all ranks have waited for each other for 20 s, because they differ in operation #8 of world: "
            "all_reduce(sum) of 9 Float on ranks 0, 2, 3, but barrier (issued at train.cc:12) on rank 1");
}

TEST(Explain, SaysThatAMessageWasLost) {
  auto job = all_but(late(2, "update"));
  auto recv = operation("recv(from 1, tag 5)", 9, "running");
  recv.peer = 1;
  recv.tag = 5;
  auto send = operation("send(to 2, tag 5)", 7, "done", 30);
  send.peer = 2;
  send.tag = 5;
  job.ranks[2] = rank_in(2, recv);
  const auto without = explain(job);
  EXPECT_EQ(without.find("rank 2 has waited 20 s in recv #9 of world (recv(from 1, tag 5)) for a message from rank 1, "
                         "which has not sent it"),
            0U)
      << without;
  job.ranks[1].operations.insert(job.ranks[1].operations.begin(), send);
  EXPECT_NE(explain(job).find("which has sent it: the message was lost"), std::string::npos) << explain(job);
}

// Rank 1 waits in an operation of a group that rank 3 has not used yet. Ranks 0 and 2 do not wait.
TEST(Explain, KnowsTheMembersOfAGroup) {
  auto sum = operation(kSum, 8, "running");
  sum.group = "tensor";
  JobPicture job{.size = 4,
                 .taken = kNow,
                 .ranks = {late(0, "forward"), rank_in(1, sum), late(2, "forward"), late(3, "backward")}};
  job.groups["tensor"] = {1, 3};
  const std::string because =
      "of tensor (all_reduce(sum) of 7 Float) for rank 3, which has not come: it has been in backward";
  EXPECT_NE(explain(job).find(because), std::string::npos) << explain(job);
  auto& recv = job.ranks[1].operations[0];
  recv.op = "recv";
  recv.peer = 0;  // of the group
  job.groups["tensor"] = {0, 1};
  EXPECT_NE(explain(job).find("for rank 0, which has not come: it has been in forward"), std::string::npos)
      << explain(job);
}

TEST(Explain, KnowsTheLastOperationIfItKnowsNothingElse) {
  auto job = all_but(rank_in(2, operation(kSum, 7, "done", 25)));
  for (auto& rank : job.ranks) rank.state = Process::kUnknown;
  job.ranks[2].operations.back().place = "train.py:33";
  job.only_operations = true;
  EXPECT_EQ(explain(job),
            kWait + std::string("it has completed all_reduce #7 of world (all_reduce(sum) of 7 Float), issued "
                                "at train.py:33, and called nothing since, for 24 s"));
  EXPECT_EQ(explain(job_picture_from_json(to_json(job, ""), "hang.json")), explain(job));
  std::erase_if(job.ranks, [](const auto& rank) { return rank.rank == 2; });
  EXPECT_EQ(explain(job), kWait + std::string("there is no dump of it"));
}

TEST(Explain, BlamesNoRankIfAllAreInTheSameOperation) {
  EXPECT_EQ(
      explain(all_but(rank_in(2, operation(kSum, 8, "running")))),
      "all ranks have been in all_reduce #8 of world (all_reduce(sum) of 7 Float) for 20 s, and none is missing: a "
      "message between them was lost, or their connection is slow");
}

TEST(Explain, SaysWhatRanksDoThatDoNotWait) {
  JobPicture job{.size = 2, .taken = kNow, .ranks = {late(0, "forward"), late(1, "serving parameters")}};
  job.ranks[1].state = Process::kStopped;
  EXPECT_EQ(
      explain(job),
      "no rank waits for another: rank 0: it has been in forward of step 12 for 21 s (process 100 on vm); rank 1: "
      "its process 101 on vm is stopped (SIGSTOP), serving parameters");
}

TEST(Explain, NamesTheRankForWhichTheOthersRegularlyWait) {
  JobPicture job{.size = 3, .taken = kNow};
  for (int rank = 0; rank < 3; ++rank) {
    auto picture = late(rank, "forward");
    picture.operations.clear();
    for (std::uint64_t step = 1; step <= 10; ++step) {
      auto done = operation(kSum, step, "done", 30 - static_cast<double>(step));
      done.finished = done.started + (rank == 1 ? 0.01 : 0.9);
      picture.operations.push_back(done);
    }
    job.ranks.push_back(picture);
  }
  EXPECT_EQ(slow_rank(job), 1);
  EXPECT_NE(explain(job).find("rank 1 is slow"), std::string::npos);
  for (auto& done : job.ranks[1].operations) done.finished = done.started + 0.5;
  EXPECT_EQ(slow_rank(job), std::nullopt);
}

TEST(Picture, IsReadAsItWasWritten) {
  auto job = all_but(late(2, "loading data"));
  job.folder = "/runs/a/logs";
  job.ranks[0].operations[0].place = "a.cc:1";
  job.ranks[1].operations[0].op = "recv";
  job.ranks[1].operations[0].peer = 3;
  job.groups["world"] = {0, 1, 2, 3};
  const auto read = job_picture_from_json(to_json(job, "a sentence"), "hang.json");
  EXPECT_EQ(read.ranks, job.ranks);
  EXPECT_EQ(read.groups, job.groups);
  EXPECT_EQ(read.folder, job.folder);
  EXPECT_EQ(explain(read), explain(job));
}

TEST(Picture, NamesWhatIsWrongWithAFile) {
  try {
    job_picture_from_json(R"({"format": 1, "size": "four"})", "hang.json");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()).find("hang.json: size: "), 0U) << error.what();
  }
}

}  // namespace
}  // namespace phalanx

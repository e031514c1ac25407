// SPDX-License-Identifier: Apache-2.0
// Checks which checkpoint a run resumes from, and the messages about those that it refuses.
#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/testing/checkpoints.h"
#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::Checkpoints;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Rank;
using testing::run_ranks;
using testing::Sharing;
using ::testing::ThrowsMessage;

class Choosing : public Checkpoints {
 protected:
  // Returns the error message of a run on one rank.
  std::string refusal(const std::string& resume, std::int64_t width = 3, const std::string& seed = "1",
                      const std::string& optimizer = "{name: sgd, momentum: 0.9}") {
    std::string message;
    run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
      Rank rank(*world, Sharing::kReplicas, width, optimizer);
      try {
        choose_here(resume, rank, *world, seed);
      } catch (const Error& error) {
        message = error.what();
      }
    });
    return message;
  }
};

TEST_F(Choosing, AutoStartsFromScratchWithoutCheckpoints) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    EXPECT_FALSE(choose_here("auto", rank, *world).checkpoint);
    EXPECT_FALSE(choose_here("none", rank, *world).checkpoint);
  });
}

TEST_F(Choosing, AutoFallsBackToThePreviousCheckpointAndSaysWhy) {
  save(2, Sharing::kReplicas, 10, 1);
  save(2, Sharing::kReplicas, 20, 2);
  const std::string file = folder_.final_path(20) + "/" + state_file(1, 2);
  write_atomically(file, read_file(file).substr(0, 50));
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    const auto choice = choose_here("auto", rank, *world);
    ASSERT_TRUE(choice.checkpoint);
    EXPECT_EQ(choice.checkpoint->manifest.position, (Position{10, 1, 2}));
    if (world->rank() == 0) {
      EXPECT_THAT(choice.refused, ::testing::ElementsAre(HasSubstr("has 50 bytes")));
    }
  });
}

TEST_F(Choosing, ADamagedCheckpointIsRefusedAndThePreviousOneIsOffered) {
  save(1, Sharing::kReplicas, 10);
  save(1, Sharing::kReplicas, 20);
  const std::string file = folder_.final_path(20) + "/" + weights_file(0, 1);
  std::string text = read_file(file);
  text[text.size() / 2] ^= 4;
  write_atomically(file, text);
  EXPECT_THAT(refusal(folder_.final_path(20) + "/"),
              AllOf(HasSubstr(file + ": is damaged"), HasSubstr("--resume " + folder_.final_path(10))));
}

TEST_F(Choosing, AutoDoesNotStartFromScratchIfAllCheckpointsAreDamaged) {
  save(1, Sharing::kReplicas, 10);
  fs::remove(folder_.final_path(10) + "/" + weights_file(0, 1));
  EXPECT_THAT(refusal("auto"), AllOf(HasSubstr("none of the checkpoints"), HasSubstr("is missing")));
  EXPECT_THAT(refusal(folder_.final_path(10)), HasSubstr("there is no other one that"));
}

TEST_F(Choosing, CheckpointsOfOtherRunsAreRefused) {
  save(2, Sharing::kReplicas, 10);
  EXPECT_THAT(refusal("auto"), IsEmpty());
  EXPECT_THAT(refusal("auto", 4), HasSubstr("another model: a.weight has shape [5, 3] in it and [5, 4] in this model"));
  EXPECT_THAT(refusal("auto", 3, "2"), HasSubstr("another run: its seed is 1, but this run's is 2"));
  EXPECT_THAT(refusal("auto", 3, "1", "{name: sgd}"), HasSubstr("another optimizer: it has momentum"));
}

TEST_F(Choosing, TheNewestOfThisRunIsOfferedInsteadOfAnotherRuns) {
  save(1, Sharing::kReplicas, 10);
  save(1, Sharing::kReplicas, 20);
  Checkpoint foreign = read_checkpoint(folder_.final_path(20));
  foreign.manifest.identity = {{"seed", "9"}};
  write_atomically(foreign.path + "/" + kManifestName, to_text(foreign.manifest));
  const auto message =
      AllOf(HasSubstr("another run: its seed is 9, but this run's is 1"),
            HasSubstr("the newest that this run can resume from is --resume " + folder_.final_path(10)));
  EXPECT_THAT(refusal("auto"), message);
  EXPECT_THAT(refusal(folder_.final_path(20)), message);
}

TEST_F(Choosing, EveryRankGetsTheError) {
  save(2, Sharing::kReplicas, 10);
  run_ranks("inproc", 3, [&](const CommunicatorPtr& world) {
    Rank rank(*world);
    EXPECT_THAT([&] { choose_here("auto", rank, *world, "7"); },
                ThrowsMessage<ConfigError>(HasSubstr("this run's is 7")));
    EXPECT_THAT([&] { choose_here("/absent", rank, *world); }, ThrowsMessage<DataError>(HasSubstr("/absent")));
  });
}

}  // namespace
}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
// Loses ranks of a run at exact points. The run that goes on without them must equal an undisturbed run bit for bit.
#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/testing/run.h"
#include "framework/base/error.h"
#include "framework/base/storage/safetensors.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::Changes;
using testing::column;
using ::testing::ElementsAre;
using testing::final_weights;
using testing::Finished;
using testing::flat;
using testing::Json;
using testing::metrics;
using testing::new_folder;
using testing::run_ranks;
using testing::summary;
using testing::tiny_config;

// 12 steps, with evaluations, a checkpoint of averages, and random numbers in between.
const Changes kChanges{
    "determinism=world_size_invariant", "faults.on_lost_rank=shrink", "train.virtual_shards=12", "train.ema_decay=0.9",
    "evaluate.every_steps=2",           "checkpoint.every_steps=3",   "watch.every_steps=1"};

// A rank that ends when it has completed `step` steps: in a hook of the event, or in the evaluation.
struct Loss {
  int rank = 0;  // in the job
  std::int64_t step = 0;
  Event event = Event::kBackward;
  HookPhase phase = HookPhase::kUser;
  bool in_evaluation = false;
};

struct PlannedEnd {};

// The work of a rank, whatever becomes of the others.
class SurvivingRank {
 public:
  SurvivingRank(const ExperimentConfig& config, const Splits& splits, const RunFolder& folder, std::vector<Loss> losses)
      : config_(config), splits_(splits), folder_(folder), losses_(std::move(losses)) {}

  void train(CommunicatorPtr world) {
    number_ = world->rank();
    while (true) {
      try {
        (void)run_experiment(config_, context(world));
        return;
      } catch (const CommError& error) {
        if (error.kind() != CommError::Kind::kPeerLost || !recovery_->carried) throw;
      }
      world = world->shrink();
      recovery_->rebuilt = true;
      recovery_->lost.push_back({.rank = -1, .reason = "planned", .step = recovery_->carried->manifest.position.step});
    }
  }

 private:
  ExperimentContext context(const CommunicatorPtr& world) {
    return {.world = world,
            .splits = splits_,
            .folder = folder_,
            .recovery = recovery_,
            .add_hooks = [this](Engine& engine) { add_hooks(engine); },
            .add_evaluation_hooks =
                [this](Evaluator& evaluator) {
                  evaluator.on(Event::kForward, [this](State&) {
                    for (const auto& loss : losses_) end_if(loss.in_evaluation && step_ >= loss.step, loss);
                  });
                }};
  }

  void add_hooks(Engine& engine) {
    engine.on(Event::kUpdate, HookPhase::kFirst, [this](State& state) { step_ = state.step; });
    for (const auto& loss : losses_) {
      if (loss.in_evaluation) continue;
      engine.on(loss.event, loss.phase, [this, loss](State& state) { end_if(state.step == loss.step, loss); });
    }
  }

  void end_if(bool now, const Loss& loss) const {
    if (now && loss.rank == number_) throw PlannedEnd();
  }

  const ExperimentConfig& config_;
  const Splits& splits_;
  const RunFolder& folder_;
  std::vector<Loss> losses_;
  std::shared_ptr<Recovery> recovery_ = std::make_shared<Recovery>();
  int number_ = 0;
  std::int64_t step_ = 0;
};

// Trains on `ranks` threads, some of which end. Returns the run, whose first rank may have been lost.
Finished run(int ranks, const std::vector<Loss>& losses, const Changes& more = {}) {
  Changes changes = kChanges;
  changes.insert(changes.end(), more.begin(), more.end());
  const auto config = tiny_config(changes);
  const auto splits = config.dataset.make();
  const RunFolder folder = new_folder();
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    at::set_num_threads(1);
    try {
      SurvivingRank(config, splits, folder, losses).train(world);
    } catch (const PlannedEnd&) {
    }
  });
  return {.folder = folder, .results = {}, .weights = {}, .errors = {}, .began_after = {}};
}

std::vector<std::int64_t> steps_of(const Finished& run, const std::string& split) {
  return column<std::int64_t>(metrics(run, split), "step");
}

TEST(Recovery, ALossAtAnyPointOfAStepLeavesTheResultAsItIs) {
  const auto undisturbed = run(3, {});
  for (const Event event : {Event::kSample, Event::kForward, Event::kBackward, Event::kUpdate}) {
    for (const int rank : {0, 1}) {
      const auto lost = run(3, {{.rank = rank, .step = 5, .event = event}});
      EXPECT_TRUE(at::equal(final_weights(lost), final_weights(undisturbed)))
          << to_string(event) << " of rank " << rank;
      EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test")) << to_string(event) << " of rank " << rank;
      EXPECT_EQ(summary(lost).at("ranks"), 2);
    }
  }
}

TEST(Recovery, ALossWhileHooksCommunicateIsRepeatedFromThere) {
  const auto undisturbed = run(3, {});
  for (const auto phase : {HookPhase::kFirst, HookPhase::kVote, HookPhase::kEvaluate, HookPhase::kCheckpoint}) {
    const auto lost = run(3, {{.rank = 2, .step = 6, .event = Event::kUpdate, .phase = phase}});
    EXPECT_TRUE(at::equal(final_weights(lost), final_weights(undisturbed))) << static_cast<int>(phase);
    EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test")) << static_cast<int>(phase);
  }
}

TEST(Recovery, AnEvaluationThatWasInterruptedIsRepeated) {
  const auto undisturbed = run(2, {});
  const auto lost = run(2, {{.rank = 1, .step = 6, .in_evaluation = true}});
  EXPECT_TRUE(at::equal(final_weights(lost), final_weights(undisturbed)));
  EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test"));
}

TEST(Recovery, TheLastEvaluationIsRepeatedToo) {
  const auto undisturbed = run(2, {});
  const auto lost = run(2, {{.rank = 0, .step = 12, .in_evaluation = true}});
  EXPECT_TRUE(at::equal(final_weights(lost), final_weights(undisturbed)));
  EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test"));
  EXPECT_EQ(summary(lost).at("steps"), 12);
}

TEST(Recovery, RanksMayBeLostOneAfterTheOther) {
  const auto undisturbed = run(4, {});
  const auto lost = run(4, {{.rank = 0, .step = 3}, {.rank = 2, .step = 4}, {.rank = 1, .step = 9}});
  EXPECT_TRUE(at::equal(final_weights(lost), final_weights(undisturbed)));
  const Json lost_ranks = summary(lost).at("lost_ranks");
  EXPECT_THAT(column<std::int64_t>(lost_ranks.get<std::vector<Json>>(), "step"), ElementsAre(3, 4, 9));
}

TEST(Recovery, ALossDuringRecoveryIsSurvived) {
  const auto undisturbed = run(3, {});
  const auto lost = run(3, {{.rank = 0, .step = 5}, {.rank = 1, .step = 5, .event = Event::kStart}});
  EXPECT_TRUE(at::equal(final_weights(lost), final_weights(undisturbed)));
  EXPECT_EQ(summary(lost).at("ranks"), 1);
}

// Returns the weights and running statistics of the model norms_under_test.
at::Tensor weights_and_statistics(const Finished& run) {
  std::vector<at::Tensor> all;
  for (const auto& [name, tensor] : load_safetensors(run.folder.weights())) {
    if (name != "number") all.push_back(tensor.to(at::kDouble));  // which differs between models
  }
  return flat(all);
}

// Running statistics change in the forward that is abandoned.
TEST(Recovery, BuffersAreAsBeforeTheStepThatIsAbandoned) {
  const Changes norms{"model=norms_under_test"};
  const auto undisturbed = run(2, {}, norms);
  const auto lost = run(2, {{.rank = 1, .step = 5}}, norms);
  EXPECT_TRUE(at::equal(weights_and_statistics(lost), weights_and_statistics(undisturbed)));
}

}  // namespace
}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
// Loses ranks of a run at exact points. The run that goes on without them must equal an undisturbed run bit for bit or,
// if it goes back to a copy, a run that resumes from a checkpoint of the same step on fewer ranks.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/folder.h"
#include "engine/testing/run.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/crc32c.h"
#include "framework/base/storage/safetensors.h"
#include "framework/comm/mesh/broken_replicas.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using testing::Changes;
using testing::column;
using ::testing::ElementsAre;
using testing::final_weights;
using testing::Finished;
using testing::flat;
using ::testing::HasSubstr;
using testing::Json;
using testing::metrics;
using testing::new_folder;
using ::testing::Not;
using testing::relative_difference;
using testing::run_ranks;
using testing::summary;
using testing::tiny_config;

// 12 steps, with evaluations, a checkpoint of averages, and random numbers in between.
const Changes kChanges{
    "determinism=world_size_invariant", "faults.on_lost_rank=shrink", "train.virtual_shards=12", "train.ema_decay=0.9",
    "evaluate.every_steps=2",           "checkpoint.every_steps=3",   "watch.every_steps=1"};

Changes plus(Changes changes, const Changes& more) {
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

// A rank that ends when it has completed `step` steps: in a hook of the event, or in the evaluation.
struct Loss {
  int rank = 0;  // in the job
  std::int64_t step = 0;
  Event event = Event::kBackward;
  HookPhase phase = HookPhase::kUser;
  bool in_evaluation = false;
};

struct PlannedEnd {};

// The samples of the steps of a run. Threads of ranks fill it.
class Taken {
 public:
  struct Step {
    int ranks = 0;
    std::int64_t epoch = 0, samples = 0;     // over all ranks
    std::vector<std::uint32_t> checksums{};  // of the inputs of all samples
  };

  // Adds the samples of a rank. A step that is repeated on fewer ranks replaces the one before.
  void add(const State& state, int ranks) {
    const std::lock_guard lock(mutex_);
    Step& step = steps_[state.step + 1];
    if (step.ranks != ranks) step = {.ranks = ranks, .epoch = state.epoch, .samples = state.batch.global_rows};
    const at::Tensor rows = state.batch.inputs.at(0).contiguous();
    const auto bytes = rows.nbytes() / static_cast<std::size_t>(rows.size(0));
    for (std::int64_t i = 0; i < state.batch.valid; ++i) {
      step.checksums.push_back(crc32c(rows[i].data_ptr(), bytes));
    }
  }

  std::map<std::int64_t, Step>& steps() { return steps_; }

  // Returns the number of samples of each step from `first` on.
  std::vector<std::int64_t> sizes(std::int64_t first = 1) const {
    std::vector<std::int64_t> all;
    for (auto step = steps_.lower_bound(first); step != steps_.end(); ++step) all.push_back(step->second.samples);
    return all;
  }

  // Returns the sorted checksums of the samples of an epoch.
  std::vector<std::uint32_t> epoch(std::int64_t number) const {
    std::vector<std::uint32_t> all;
    for (const auto& [_, step] : steps_) {
      if (step.epoch == number) std::ranges::copy(step.checksums, std::back_inserter(all));
    }
    std::ranges::sort(all);
    return all;
  }

 private:
  std::mutex mutex_;
  std::map<std::int64_t, Step> steps_;
};

// The work of a rank, whatever becomes of the others.
class SurvivingRank {
 public:
  SurvivingRank(const ExperimentConfig& config, const Splits& splits, const RunFolder& folder, std::vector<Loss> losses,
                Taken* taken)
      : config_(config), splits_(splits), folder_(folder), losses_(std::move(losses)), taken_(taken) {}

  void train(CommunicatorPtr world) {
    number_ = world->rank();
    members_.resize(static_cast<std::size_t>(world->size()));
    std::iota(members_.begin(), members_.end(), 0);
    while (true) {
      try {
        (void)run_experiment(config_, context(world));
        expect_repeated();
        return;
      } catch (const CommError& error) {
        if (error.kind() != CommError::Kind::kPeerLost || !recovery_->can_go_on()) throw;
      }
      world = without_broken_replicas(world->shrink());
      if (world == nullptr) return;
      recovery_->rebuilt = true;
      recovery_->lost.push_back({.rank = -1, .reason = "planned", .step = step_});
    }
  }

 private:
  // Returns the group of the ranks whose replicas are whole. Null if this rank has to leave.
  CommunicatorPtr without_broken_replicas(CommunicatorPtr world) {
    const MeshShape shape = mesh_shape(config_.mesh, static_cast<std::int64_t>(members_.size()));
    while (true) {
      const at::Tensor all = at::empty({world->size()}, at::kInt);
      world->all_gather(all, at::full({1}, number_, at::kInt)).wait();
      const std::vector<int> left(all.data_ptr<int>(), all.data_ptr<int>() + all.numel());
      const auto stranded = stranded_ranks(members_, left, shape.product() / shape[Axis::kData]);
      if (std::ranges::find(stranded, number_, &Stranded::rank) != stranded.end()) return nullptr;
      if (stranded.empty()) {
        members_ = left;
        return world;
      }
      world = world->shrink();
    }
  }

  ExperimentContext context(const CommunicatorPtr& world) {
    return {.world = world,
            .splits = splits_,
            .folder = folder_,
            .recovery = recovery_,
            .add_hooks = [this, ranks = world->size()](Engine& engine) { add_hooks(engine, ranks); },
            .add_evaluation_hooks =
                [this](Evaluator& evaluator) {
                  evaluator.on(Event::kForward, [this](State&) {
                    for (const auto& loss : losses_) end_if(loss.in_evaluation && step_ >= loss.step, loss);
                  });
                }};
  }

  // If several ranks are lost, the run may go back to a checkpoint that is complete only after that.
  void expect_repeated() const {
    const auto& strategy = config_.strategy;
    if (!recovery_->rebuilt || losses_.size() > 1 || strategy.selected() == "auto") return;
    const bool divided = !model_parallel_axes(config_.mesh).empty();
    EXPECT_EQ(recovery_->repeated_seconds > 0, divided || !strategy.traits().ranks_are_equal());
  }

  void add_hooks(Engine& engine, int ranks) {
    if (taken_ != nullptr) {
      engine.on(Event::kSample, HookPhase::kFirst, [this, ranks](State& state) { taken_->add(state, ranks); });
    }
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
  Taken* taken_;
  std::shared_ptr<Recovery> recovery_ = std::make_shared<Recovery>();
  int number_ = 0;
  std::vector<int> members_{};  // the numbers of the ranks of its world
  std::int64_t step_ = 0;
};

// Trains on `ranks` threads, some of which end. Returns the run, whose first rank may have been lost. `errors`: gets
// the errors that end ranks; null: there must be none. `taken`: gets the samples; may be null.
Finished run(int ranks, const std::vector<Loss>& losses, const Changes& more = {},
             std::vector<std::string>* errors = nullptr, Taken* taken = nullptr) {
  const auto config = tiny_config(plus(kChanges, more));
  const auto splits = config.dataset.make();
  const RunFolder folder = new_folder();
  std::mutex mutex;
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    at::set_num_threads(1);
    try {
      SurvivingRank(config, splits, folder, losses, taken).train(world);
    } catch (const PlannedEnd&) {
    } catch (const Error& error) {
      if (errors == nullptr) throw;
      const std::lock_guard lock(mutex);
      errors->push_back(error.what());
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

// Ranks that take part after a step of a run.
struct Growth {
  std::int64_t step = 0;
  int ranks = 2;  // before
  int newcomers = 1;
  int began_with = 0;                     // ranks of the job, some of which it has lost already; 0: `ranks`
  std::optional<std::int64_t> ends_at{};  // the first rank ends in this step, so the others have only what it gave them
};

// Trains on threads, whose number grows.
Finished run_with_newcomers(const Growth& growth, const Changes& more = {}, Taken* taken = nullptr) {
  const auto config = tiny_config(plus(plus(kChanges, {"watch.nan_guard.every_steps=1"}), more));
  const auto splits = config.dataset.make();
  const RunFolder folder = new_folder();
  run_ranks("inproc", growth.ranks + growth.newcomers, [&](const CommunicatorPtr& world) {
    at::set_num_threads(1);
    const bool joins = world->rank() >= growth.ranks;
    const auto old = world->split(joins ? 1 : 0, world->rank());
    const auto recovery = std::make_shared<Recovery>();
    if (growth.began_with > 0) recovery->ranks = growth.began_with;
    std::int64_t step = 0;
    bool together = joins;  // the newcomer takes part
    const auto train = [&](const CommunicatorPtr& ranks) {
      const ExperimentContext context{
          .world = ranks,
          .splits = splits,
          .folder = folder,
          .recovery = recovery,
          .newcomers_wait = [&] { return !together && world->rank() == 0 && step + 1 >= growth.step; },
          .add_hooks =
              [&](Engine& engine) {
                if (taken != nullptr) {
                  engine.on(Event::kSample, HookPhase::kFirst,
                            [taken, size = ranks->size()](State& state) { taken->add(state, size); });
                }
                engine.on(Event::kUpdate, HookPhase::kFirst, [&](State& state) { step = state.step; });
                engine.on(Event::kBackward, HookPhase::kUser, [&](State& state) {
                  if (world->rank() == 0 && state.step == growth.ends_at) throw PlannedEnd();
                });
              }};
      (void)run_experiment(config, context);
    };
    if (joins) {
      recovery->carried = nothing_carried();
      recovery->ranks = growth.began_with;
      recovery->rebuilt = true;
    } else {
      EXPECT_THROW(train(old), NewcomersWait);
      EXPECT_EQ(step, growth.step);
      old->barrier().wait();  // the ranks can still communicate
      recovery->rebuilt = together = true;
    }
    try {
      train(world);
    } catch (const PlannedEnd&) {
    } catch (const CommError& error) {
      if (!growth.ends_at || error.kind() != CommError::Kind::kPeerLost) throw;
      train(world->shrink());
    }
  });
  return {.folder = folder, .results = {}, .weights = {}, .errors = {}, .began_after = {}};
}

TEST(Recovery, ANewcomerLeavesTheResultAsItIs) {
  const auto undisturbed = run(2, {});
  for (const std::int64_t step : {2, 3, 4, 6, 11}) {
    const auto grown = run_with_newcomers({.step = step});
    EXPECT_TRUE(at::equal(final_weights(grown), final_weights(undisturbed))) << step;
    EXPECT_EQ(steps_of(grown, "test"), steps_of(undisturbed, "test")) << step;
    EXPECT_EQ(steps_of(grown, "train"), steps_of(undisturbed, "train")) << step;
    EXPECT_EQ(summary(grown).at("ranks"), 3);
  }
}

TEST(Recovery, ANewcomerHasAllStateOfTheRun) {
  const auto undisturbed = run(2, {});
  for (const std::int64_t step : {3, 4}) {
    const auto grown = run_with_newcomers({.step = 3, .ends_at = step});
    EXPECT_TRUE(at::equal(final_weights(grown), final_weights(undisturbed))) << step;
  }
}

// Running statistics change in the forward that is abandoned.
TEST(Recovery, BuffersAreAsBeforeTheStepThatIsAbandoned) {
  const Changes norms{"model=norms_under_test"};
  const auto undisturbed = run(2, {}, norms);
  const auto lost = run(2, {{.rank = 1, .step = 5}}, norms);
  EXPECT_TRUE(at::equal(weights_and_statistics(lost), weights_and_statistics(undisturbed)));
}

// Only one rank has a part of the optimizer's state, which another one copies.
const Changes kSharded{"strategy=sharded", "determinism=run", "faults.copies_every=3", "checkpoint.keep_last=10"};

// Returns the weights of a run that resumes on `ranks` ranks from the checkpoint of a step of another run.
at::Tensor resumed_weights(const Finished& from, std::int64_t step, int ranks, const Changes& changes) {
  const auto path = CheckpointFolder(from.folder.checkpoints()).final_path(step);
  return final_weights(run(ranks, {}, plus(changes, {"checkpoint.resume=" + path})));
}

TEST(Recovery, GoesBackToACopyOfWhatOnlyOneRankHas) {
  for (const auto* const strategy :
       {"strategy=sharded", "strategy={sharded: {stage: 3}}", "strategy={sharded: {one_copy: true}}",
        "strategy={name: all_reduce, compression: {name: topk, fraction: 0.3}}"}) {
    const auto changes = plus(kSharded, {strategy});
    const auto undisturbed = run(3, {}, changes);
    const auto expected = resumed_weights(undisturbed, 3, 2, changes);
    for (const Event event : {Event::kSample, Event::kBackward, Event::kUpdate}) {
      const auto lost = run(3, {{.rank = 1, .step = 5, .event = event}}, changes);
      EXPECT_TRUE(at::equal(final_weights(lost), expected)) << strategy << ", " << to_string(event);
      EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test")) << strategy << ", " << to_string(event);
      EXPECT_EQ(steps_of(lost, "train"), steps_of(undisturbed, "train")) << strategy << ", " << to_string(event);
      EXPECT_EQ(summary(lost).at("ranks"), 2);
    }
  }
}

TEST(Recovery, ANewcomerGetsWhatOnlyOneRankHas) {
  for (const auto* const strategy : {"strategy=sharded", "strategy={sharded: {stage: 2}}",
                                     "strategy={sharded: {stage: 3}}", "strategy={sharded: {one_copy: true}}",
                                     "strategy={name: all_reduce, compression: {name: topk, fraction: 0.3}}"}) {
    const auto changes = plus(kSharded, {strategy});
    const auto undisturbed = run(2, {}, changes);
    const auto grown = run_with_newcomers({.step = 6}, changes);
    EXPECT_TRUE(at::equal(final_weights(grown), resumed_weights(undisturbed, 6, 3, changes))) << strategy;
    EXPECT_EQ(steps_of(grown, "test"), steps_of(undisturbed, "test")) << strategy;
    EXPECT_EQ(steps_of(grown, "train"), steps_of(undisturbed, "train")) << strategy;
    EXPECT_EQ(summary(grown).at("ranks"), 3) << strategy;
  }
}

// The last copy before that may be older, and the step may be the last one of an epoch.
TEST(Recovery, ANewcomerGetsItAfterAnyStep) {
  const auto changes = plus(kSharded, {"faults.copies_every=1000", "checkpoint.keep_last=20"});
  const auto undisturbed = run(2, {}, plus(changes, {"checkpoint.every_steps=1"}));
  for (const std::int64_t step : {2, 4, 5, 8, 11}) {
    const auto grown = run_with_newcomers({.step = step}, changes);
    EXPECT_TRUE(at::equal(final_weights(grown), resumed_weights(undisturbed, step, 3, changes))) << step;
  }
}

TEST(Recovery, ASingleRankGivesNewcomersAllItHas) {
  const auto undisturbed = run(1, {}, kSharded);
  const auto grown = run_with_newcomers({.step = 6, .ranks = 1, .newcomers = 2}, kSharded);
  EXPECT_TRUE(at::equal(final_weights(grown), resumed_weights(undisturbed, 6, 3, kSharded)));
}

TEST(Recovery, NewcomersHaveACopyOfWhatTheyGot) {
  const auto undisturbed = run(2, {}, kSharded);
  const auto grown = run_with_newcomers({.step = 6, .ends_at = 7}, kSharded);
  EXPECT_TRUE(at::equal(final_weights(grown), resumed_weights(undisturbed, 6, 2, kSharded)));
  EXPECT_EQ(summary(grown).at("ranks"), 2);
}

TEST(Recovery, GoesBackToTheCopyOfTheStartOrOfTheEndOfAnEpoch) {
  const auto changes = plus(kSharded, {"faults.copies_every=4", "checkpoint.every_steps=4"});
  const auto undisturbed = run(3, {}, changes);
  const auto early = run(3, {{.rank = 0, .step = 1}}, changes);
  EXPECT_LT(relative_difference(final_weights(early), final_weights(undisturbed)), 1e-4);
  const auto late = run(3, {{.rank = 0, .step = 6}}, changes);
  EXPECT_TRUE(at::equal(final_weights(late), resumed_weights(undisturbed, 4, 2, changes)));
  EXPECT_EQ(summary(late).at("steps"), 12);
}

TEST(Recovery, GoesBackNoFurtherThanToTheNewestCheckpoint) {
  const auto changes = plus(kSharded, {"faults.copies_every=1000"});
  const auto undisturbed = run(3, {}, changes);
  const auto lost = run(3, {{.rank = 1, .step = 8}}, changes);
  EXPECT_TRUE(at::equal(final_weights(lost), resumed_weights(undisturbed, 6, 2, changes)));
}

TEST(Recovery, RanksMayBeLostOneAfterTheOtherWithCopies) {
  const auto undisturbed = run(4, {}, kSharded);
  const auto lost = run(4,
                        {{.rank = 0, .step = 4},
                         {.rank = 1, .step = 3, .event = Event::kStart},
                         {.rank = 3, .step = 6, .event = Event::kUpdate, .phase = HookPhase::kCheckpoint}},
                        kSharded);
  EXPECT_LT(relative_difference(final_weights(lost), final_weights(undisturbed)), 1e-4);
  EXPECT_EQ(summary(lost).at("ranks"), 1);
}

const std::vector<Loss> kRankAndNeighbour{{.rank = 1, .step = 8}, {.rank = 2, .step = 8}};

TEST(Recovery, GoesBackToACheckpointIfCopiesAreLost) {
  const auto undisturbed = run(4, {}, kSharded);
  const auto lost = run(4, kRankAndNeighbour, kSharded);
  // The checkpoint of step 3 is complete, and that of step 6 may be.
  EXPECT_TRUE(at::equal(final_weights(lost), resumed_weights(undisturbed, 3, 2, kSharded)) ||
              at::equal(final_weights(lost), resumed_weights(undisturbed, 6, 2, kSharded)));
  EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test"));
}

TEST(Recovery, EndsIfCopiesAreLostAndThereIsNoCheckpoint) {
  std::vector<std::string> errors;
  (void)run(4, kRankAndNeighbour, plus(kSharded, {"checkpoint.every_steps=0"}), &errors);
  EXPECT_THAT(errors, ElementsAre(HasSubstr("set checkpoint.every_steps"), HasSubstr("set checkpoint.every_steps")));
}

// 3 epochs of 100 samples, with 8 samples for each of 3 ranks.
const Changes kPerRank{"determinism=run", "faults.batch=per_rank", "train.global_batch_size=24", "schedule=cosine",
                       "checkpoint.keep_last=10"};

TEST(Recovery, EachSampleIsTakenOnceWhenTheBatchPerRankIsKept) {
  Taken whole, rest;
  const auto undisturbed = run(3, {}, kPerRank, nullptr, &whole);
  EXPECT_THAT(whole.sizes(), ElementsAre(24, 24, 24, 24, 4, 24, 24, 24, 24, 4, 24, 24, 24, 24, 4));
  const auto lost = run(3, {{.rank = 0, .step = 7}}, kPerRank, nullptr, &rest);
  EXPECT_THAT(rest.sizes(6), ElementsAre(24, 24, 16, 16, 16, 4, 16, 16, 16, 16, 16, 16, 4));
  for (const int epoch : {0, 1, 2}) EXPECT_EQ(rest.epoch(epoch), whole.epoch(epoch)) << epoch;
  EXPECT_EQ(summary(lost).at("steps"), 18);
  // The schedule follows the samples.
  const auto rates = column<double>(metrics(undisturbed, "train"), "learning_rate");
  const auto rates_of_lost = column<double>(metrics(lost, "train"), "learning_rate");
  EXPECT_EQ(rates_of_lost.back(), rates.back());
  EXPECT_TRUE(std::ranges::is_sorted(rates_of_lost, std::greater<>()));
}

TEST(Recovery, EachSampleIsTakenOnceAfterSeveralLosses) {
  Taken whole, rest;
  (void)run(3, {}, kPerRank, nullptr, &whole);
  // The second loss is in the second step on 2 ranks, in the third one, and in the last one of the epoch.
  for (const std::int64_t second : {7, 8, 10}) {
    Taken taken;
    (void)run(3, {{.rank = 0, .step = 6}, {.rank = 2, .step = second}}, kPerRank, nullptr, &taken);
    for (const int epoch : {0, 1, 2}) EXPECT_EQ(taken.epoch(epoch), whole.epoch(epoch)) << second << ", " << epoch;
    EXPECT_EQ(taken.sizes().back(), 4);  // 100 samples in steps of 8
  }
}

TEST(Recovery, ALossAfterTheLastStepOfAnEpochRepeatsNoSample) {
  Taken whole, taken;
  (void)run(3, {}, kPerRank, nullptr, &whole);
  const auto lost = run(3, {{.rank = 1, .step = 5, .event = Event::kUpdate, .phase = HookPhase::kEvaluate}}, kPerRank,
                        nullptr, &taken);
  for (const int epoch : {0, 1, 2}) EXPECT_EQ(taken.epoch(epoch), whole.epoch(epoch)) << epoch;
  EXPECT_EQ(summary(lost).at("steps"), 5 + 7 + 7);
}

TEST(Recovery, ACopyKeepsThePlaceInTheEpochToo) {
  Taken whole, taken;
  const auto changes = plus(kPerRank, {"strategy=sharded", "faults.copies_every=3"});
  (void)run(3, {}, changes, nullptr, &whole);
  (void)run(3, {{.rank = 1, .step = 8}}, changes, nullptr, &taken);
  EXPECT_THAT(taken.sizes(6), ElementsAre(24, 16, 16, 16, 16, 12, 16, 16, 16, 16, 16, 16, 4));
  for (const int epoch : {0, 1, 2}) EXPECT_EQ(taken.epoch(epoch), whole.epoch(epoch)) << epoch;
}

TEST(Recovery, EachSampleIsTakenOnceWhenTheBatchGrowsAgain) {
  Taken whole;
  const auto undisturbed = run(3, {}, kPerRank, nullptr, &whole);
  const auto rates = column<double>(metrics(undisturbed, "train"), "learning_rate");
  // Two of three ranks take 16 samples, the last 4 of an epoch in its 7th step.
  for (const auto* const strategy : {"strategy=all_reduce", "strategy=sharded"}) {
    for (const std::int64_t step : {2, 6, 7, 9}) {
      Taken taken;
      const auto grown = run_with_newcomers({.step = step, .began_with = 3}, plus(kPerRank, {strategy}), &taken);
      for (const int epoch : {0, 1, 2}) EXPECT_EQ(taken.epoch(epoch), whole.epoch(epoch)) << step << ", " << epoch;
      const auto sizes = taken.sizes();
      EXPECT_EQ(sizes.at(static_cast<std::size_t>(step) - 1), step == 7 ? 4 : 16) << step;
      EXPECT_EQ(sizes.at(static_cast<std::size_t>(step)), step == 6 ? 4 : 24) << step;
      EXPECT_EQ(column<double>(metrics(grown, "train"), "learning_rate").back(), rates.back()) << step;
    }
  }
}

TEST(Recovery, ACheckpointOfSmallerBatchesContinuesWithTheConfiguredOnes) {
  Taken whole, taken, resumed;
  (void)run(3, {}, kPerRank, nullptr, &whole);
  const auto lost = run(3, {{.rank = 0, .step = 7}}, kPerRank, nullptr, &taken);
  const auto path = CheckpointFolder(lost.folder.checkpoints()).final_path(9);  // after 80 samples of epoch 1
  (void)run(3, {}, plus(kPerRank, {"checkpoint.resume=" + path}), nullptr, &resumed);
  EXPECT_THAT(resumed.sizes(), ElementsAre(20, 24, 24, 24, 24, 4));
  auto& steps = resumed.steps();
  for (std::int64_t step = 1; step <= 9; ++step) steps[step] = taken.steps().at(step);
  for (const int epoch : {0, 1, 2}) EXPECT_EQ(resumed.epoch(epoch), whole.epoch(epoch)) << epoch;
}

// With the configured batches alone, there would be 15 steps.
TEST(Recovery, ATraceOfARunThatResumesAfterSmallerBatchesCountsAllSteps) {
  const auto lost = run(3, {{.rank = 0, .step = 7}}, kPerRank);
  const auto path = CheckpointFolder(lost.folder.checkpoints()).final_path(15);
  const auto resumed = run(3, {}, plus(kPerRank, {"checkpoint.resume=" + path, "watch.profile={from: 16, to: 20}"}));
  EXPECT_EQ(summary(resumed).at("steps"), 17);
  const std::string trace = read_file(resumed.folder.trace());
  EXPECT_THAT(trace, AllOf(HasSubstr("\"step 16\""), HasSubstr("\"step 17\"")));
  EXPECT_THAT(trace, Not(HasSubstr("\"step 15\"")));
}

// Replicas of two ranks each, of which one is lost.
const Changes kTensor{"mesh.tensor=2"}, kPipe{"mesh.pipe=2", "pipeline.micro_batches=2"},
    kContext{"mesh.context=2", "dataset=padded_tokens_under_test",
             "model={name: char_lm, layers: 1, heads: 2, width: 16}"};
const Changes kMesh = plus(kSharded, {"strategy=all_reduce"});

// Loses a rank at several points of step 6 on such a mesh, which goes back to the copy of step 3.
void expect_without_replica(const Changes& mesh) {
  const auto changes = plus(kMesh, mesh);
  const auto undisturbed = run(4, {}, changes);
  const auto expected = resumed_weights(undisturbed, 3, 2, changes);
  for (const auto& [rank, event] : {std::pair(1, Event::kSample), std::pair(2, Event::kBackward),
                                    std::pair(1, Event::kBackward), std::pair(3, Event::kUpdate)}) {
    const auto lost = run(4, {{.rank = rank, .step = 5, .event = event}}, changes);
    const auto where = std::string(to_string(event)) + " of rank " + std::to_string(rank);
    EXPECT_TRUE(at::equal(final_weights(lost), expected)) << where;
    EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test")) << where;
    EXPECT_EQ(steps_of(lost, "train"), steps_of(undisturbed, "train")) << where;
    EXPECT_EQ(summary(lost).at("ranks"), 2) << where;
  }
}

TEST(Recovery, AMeshGoesOnWithoutTheReplicaThatHasLostARank) { expect_without_replica(kTensor); }

TEST(Recovery, AMeshOfASharingStrategyDoesToo) { expect_without_replica(plus(kTensor, {"strategy=sharded"})); }

TEST(Recovery, APipelineGoesOnWithoutTheReplicaThatHasLostARank) { expect_without_replica(kPipe); }

TEST(Recovery, SequencesThatRanksShareGoOnWithoutTheReplicaThatHasLostARank) { expect_without_replica(kContext); }

TEST(Recovery, AMeshGetsANewReplica) {
  for (const auto& mesh : {kTensor, plus(kTensor, {"strategy=sharded"})}) {
    const auto changes = plus(kMesh, mesh);
    const auto undisturbed = run(4, {}, changes);
    const auto grown = run_with_newcomers({.step = 6, .ranks = 4, .newcomers = 2}, changes);
    EXPECT_TRUE(at::equal(final_weights(grown), resumed_weights(undisturbed, 6, 6, changes))) << mesh.back();
    EXPECT_EQ(steps_of(grown, "test"), steps_of(undisturbed, "test")) << mesh.back();
    EXPECT_EQ(summary(grown).at("ranks"), 6) << mesh.back();
  }
}

// A single replica keeps no copies for losses, since any loss would end it.
TEST(Recovery, ASingleReplicaGivesANewOneAllItHas) {
  const auto changes = plus(kMesh, kTensor);
  const auto undisturbed = run(2, {}, changes);
  const auto grown = run_with_newcomers({.step = 6, .ranks = 2, .newcomers = 2}, changes);
  EXPECT_TRUE(at::equal(final_weights(grown), resumed_weights(undisturbed, 6, 4, changes)));
}

TEST(Recovery, AMeshMayLoseReplicasOneAfterTheOther) {
  const auto changes = plus(kMesh, kTensor);
  const auto undisturbed = run(6, {}, changes);
  const auto path = CheckpointFolder(undisturbed.folder.checkpoints()).final_path(3);
  const auto first_loss = run(4, {}, plus(changes, {"checkpoint.resume=" + path}));
  const auto lost = run(6, {{.rank = 1, .step = 5}, {.rank = 4, .step = 8}}, changes);
  EXPECT_TRUE(at::equal(final_weights(lost), resumed_weights(first_loss, 6, 2, changes)));
  EXPECT_EQ(summary(lost).at("ranks"), 2);
}

}  // namespace
}  // namespace phalanx

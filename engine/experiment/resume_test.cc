// SPDX-License-Identifier: Apache-2.0
// Tests that a run which was stopped, killed or saved in between continues as if it had not been interrupted.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "engine/checkpoint/folder.h"
#include "engine/testing/run.h"
#include "framework/base/config/config.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::Changes;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::Finished;
using ::testing::HasSubstr;
using testing::metrics_but_times;
using testing::new_folder;
using testing::relative_difference;

// Returns a function that adds a hook, which sets parameters to NaN before the forward of a step.
std::function<void(Engine&)> spoil_in(std::int64_t step) {
  return [step](Engine& engine) {
    engine.on(Event::kSample, [&engine, step](State& state) {
      const at::NoGradGuard no_grad;
      if (state.step == step - 1) engine.slices().at(0).values.fill_(std::numeric_limits<float>::quiet_NaN());
    });
  };
}

// The strategy for such a hook: each rank has a separate copy of the parameters. With a shared copy, other ranks may
// still be saving the step before.
const std::string kOwnCopies = "strategy=all_reduce";

// Trains for 16 steps, with a line of metrics after every third one, so that windows cross the ends of epochs and of
// interrupted runs. `stop_after`: the step after which the run is asked to stop, like by SIGTERM; the ranks agree one
// step later. `add_hooks` is called on every rank.
Finished run_interrupted(
    int ranks, const RunFolder& folder, const Changes& changes = {}, std::int64_t stop_after = -1,
    const std::function<void(Engine&)>& add_hooks = [](Engine&) {}) {
  Changes all{"train.epochs=4", "schedule={name: plateau, patience: 0, threshold: 0.2, gamma: 0.5}"};
  all.insert(all.end(), changes.begin(), changes.end());
  std::vector<std::int64_t> steps(static_cast<std::size_t>(ranks));
  return testing::run_tiny(
      ranks, folder, all,
      {.stop_asked = [&](int rank) { return ++steps[static_cast<std::size_t>(rank)] == stop_after; },
       .add_hooks = [&](Engine& engine, int) { add_hooks(engine); }});
}

// Expects that `run` resumed after step `after` and ended like `reference`. The first check is necessary because a run
// from the start would end the same way.
void expect_resumed(std::int64_t after, const Finished& run, const Finished& reference) {
  EXPECT_THAT(run.errors, Each(""));
  EXPECT_THAT(run.began_after, Each(after));
  EXPECT_TRUE(at::equal(run.weights[0], reference.weights[0]));
  EXPECT_EQ(run.results[0].steps, reference.results[0].steps);
  EXPECT_EQ(run.results[0].test, reference.results[0].test);
  EXPECT_EQ(metrics_but_times(run.folder), metrics_but_times(reference.folder));
}

std::vector<std::int64_t> steps_saved(const RunFolder& folder) {
  std::vector<std::int64_t> steps;
  for (const auto& one : CheckpointFolder(folder.checkpoints()).list([](const std::string&) {})) {
    steps.push_back(one.manifest.position.step);
  }
  return steps;
}

TEST(Resume, ARunStoppedAfterAnyStepEndsLikeAnUninterruptedOneBitForBit) {
  for (const int ranks : {1, 2, 3}) {
    const auto whole = run_interrupted(ranks, new_folder());
    for (std::int64_t stop = 1; stop <= 15; stop += ranks) {
      const auto folder = new_folder();
      const auto stopped = run_interrupted(ranks, folder, {}, stop);
      EXPECT_TRUE(stopped.results[0].stopped);
      EXPECT_THAT(steps_saved(folder), ElementsAre(stop + 1));
      SCOPED_TRACE("stopped after " + std::to_string(stop) + " on " + std::to_string(ranks));
      expect_resumed(stop + 1, run_interrupted(ranks, folder, {"checkpoint.resume=auto"}), whole);
    }
  }
}

TEST(Resume, HooksOfOnStartSeeTheRestoredStateFromThePhaseAfterCheckpoints) {
  const auto folder = new_folder();
  run_interrupted(1, folder, {}, 5);
  std::int64_t measured = -1, begun = -1, seen_by_user = -1;
  run_interrupted(1, folder, {"checkpoint.resume=auto"}, -1, [&](Engine& engine) {
    engine.on(Event::kStart, [&](State& state) { seen_by_user = state.step; });
    engine.on(Event::kStart, HookPhase::kAfterCheckpoint, [&](State& state) { begun = state.step; });
    engine.on(Event::kStart, HookPhase::kMeasure, [&](State& state) { measured = state.step; });
  });
  EXPECT_EQ(measured, 0);
  EXPECT_EQ(begun, 6);
  EXPECT_EQ(seen_by_user, 6);
}

TEST(Resume, EveryCheckpointOfARunLeadsToTheSameResult) {
  const auto whole = run_interrupted(2, new_folder(), {"checkpoint.every_steps=1", "checkpoint.keep_last=100"});
  EXPECT_EQ(steps_saved(whole.folder).size(), 16u);
  EXPECT_TRUE(at::equal(whole.weights[0], run_interrupted(2, new_folder()).weights[0])) << "saving changes nothing";
  for (const auto step : steps_saved(whole.folder)) {
    const auto path = CheckpointFolder(whole.folder.checkpoints()).final_path(step);
    const auto again = run_interrupted(2, new_folder(), {"checkpoint.resume=" + path});
    EXPECT_THAT(again.errors, Each(""));
    EXPECT_THAT(again.began_after, Each(step));
    EXPECT_TRUE(at::equal(again.weights[0], whole.weights[0])) << step;
    EXPECT_EQ(again.results[0].test, whole.results[0].test) << step;
  }
}

// Both ranks have the same results, which count once. The run stops within a window of three steps.
TEST(Resume, MetersContinueOnRanksThatDivideLayers) {
  const Changes mesh{"mesh.tensor=2"};
  const auto folder = new_folder();
  run_interrupted(2, folder, mesh, 4);
  const auto resumed = run_interrupted(2, folder, {"mesh.tensor=2", "checkpoint.resume=auto"});
  expect_resumed(5, resumed, run_interrupted(2, new_folder(), mesh));
}

TEST(Resume, AnotherNumberOfRanksContinuesInTheSameSampleOrder) {
  const auto alone = run_interrupted(1, new_folder());
  for (const int before : {1, 2, 4}) {
    for (const int after : {1, 2, 4}) {
      const auto folder = new_folder();
      run_interrupted(before, folder, {}, 5);
      const auto resumed = run_interrupted(after, folder, {"checkpoint.resume=auto"});
      EXPECT_THAT(resumed.errors, Each(""));
      EXPECT_THAT(resumed.began_after, Each(6));
      const double difference = relative_difference(resumed.weights[0], alone.weights[0]);
      EXPECT_LT(difference, 1e-5) << before << " to " << after;
      EXPECT_EQ(metrics_but_times(folder).size(), metrics_but_times(alone.folder).size());
    }
  }
}

TEST(Resume, ResumingManyTimesGivesTheSameResult) {
  const auto whole = run_interrupted(2, new_folder());
  const auto folder = new_folder();
  for (int i = 0; i < 6; ++i) run_interrupted(2, folder, {"checkpoint.resume=auto"}, 1);
  expect_resumed(12, run_interrupted(2, folder, {"checkpoint.resume=auto"}), whole);
}

// A measurement never selects buckets of 1 KB.
TEST(Resume, MeasuredBucketSizesAreKept) {
  const auto whole = run_interrupted(2, new_folder(), {"framework.bucket_bytes=1KB"});
  const auto folder = new_folder();
  run_interrupted(2, folder, {"framework.bucket_bytes=1KB"}, 5);
  const auto resumed = run_interrupted(2, folder, {"framework.bucket_bytes=auto", "checkpoint.resume=auto"});
  EXPECT_EQ(resumed.results[0].bucket_bytes, 1024);
  expect_resumed(6, resumed, whole);
  const auto path = CheckpointFolder(folder.checkpoints()).final_path(6);
  const auto by_path = run_interrupted(2, new_folder(), {"framework.bucket_bytes=auto", "checkpoint.resume=" + path});
  EXPECT_EQ(by_path.results[1].bucket_bytes, 1024);
  const auto other_ranks =
      run_interrupted(3, new_folder(), {"framework.bucket_bytes=auto", "checkpoint.resume=" + path});
  EXPECT_EQ(other_ranks.results[0].bucket_bytes, 64 << 10) << "measured again";
}

// A checkpoint that is copied out of its folder still describes its run.
TEST(Resume, ACheckpointHasTheConfigAndItsProvenance) {
  const Changes changes{"checkpoint.every_epochs=2", "optimizer.lr=0.03125"};
  const auto finished = run_interrupted(2, new_folder(), changes);
  const auto saved = CheckpointFolder(finished.folder.checkpoints()).list([](const std::string&) {});
  ASSERT_FALSE(saved.empty());
  ExperimentConfig config;
  config::load_text(config, saved[0].manifest.config, saved[0].path);
  EXPECT_EQ(config::dump(config), saved[0].manifest.config);
  EXPECT_THAT(saved[0].manifest.config, HasSubstr("lr: 0.03125"));
  EXPECT_THAT(saved[0].manifest.provenance, Contains(::testing::Pair("command", ::testing::Not(""))));
}

TEST(Resume, AutoStartsFromTheBeginningIfThereIsNoCheckpoint) {
  const auto whole = run_interrupted(2, new_folder());
  const auto folder = new_folder();
  write_atomically(folder.metrics(), "{\"step\": 3, of a run that was killed early");
  expect_resumed(0, run_interrupted(2, folder, {"checkpoint.resume=auto"}), whole);
}

TEST(Resume, AFinishedRunContinuesIfThereIsMoreToDo) {
  const Changes saved{"checkpoint.every_epochs=1"};
  const auto folder = new_folder();
  run_interrupted(2, folder, {saved[0], "train.epochs=2", "schedule=constant"});
  const auto more = run_interrupted(2, folder, {saved[0], "checkpoint.resume=auto", "schedule=constant"});
  expect_resumed(8, more, run_interrupted(2, new_folder(), {"schedule=constant"}));
  const auto again = run_interrupted(2, folder, {saved[0], "checkpoint.resume=auto", "schedule=constant"});
  EXPECT_THAT(again.began_after, Each(16)) << "nothing is left to do";
  EXPECT_EQ(again.results[0].steps, 16);
  EXPECT_TRUE(at::equal(again.weights[0], more.weights[0]));
  EXPECT_EQ(again.results[0].test, more.results[0].test);
}

TEST(Resume, EachLocalReplicaContinuesFromItsOwnState) {
  const Changes strategy{"strategy={name: local_sgd, every: 5}"};
  const auto whole = run_interrupted(2, new_folder(), strategy);
  for (const std::int64_t stop : {2, 4, 6}) {
    const auto folder = new_folder();
    run_interrupted(2, folder, strategy, stop);
    expect_resumed(stop + 1, run_interrupted(2, folder, {strategy[0], "checkpoint.resume=auto"}), whole);
  }
}

TEST(Resume, ShardsResumeOnAnyNumberOfRanks) {
  const Changes strategy{"strategy=sharded"};
  const auto whole = run_interrupted(3, new_folder(), strategy);
  const auto folder = new_folder();
  run_interrupted(3, folder, strategy, 6);
  expect_resumed(7, run_interrupted(3, folder, {strategy[0], "checkpoint.resume=auto"}), whole);
  const auto other = new_folder();
  run_interrupted(3, other, strategy, 6);
  const auto replicated = run_interrupted(2, other, {"checkpoint.resume=auto"});
  EXPECT_THAT(replicated.errors, Each(""));
  EXPECT_THAT(replicated.began_after, Each(7));
  EXPECT_LT(relative_difference(replicated.weights[0], whole.weights[0]), 1e-5);
}

// Covers batch norm over all ranks, averages, clipping, and a loss scale that falls and rises.
TEST(Resume, AllStateOfTrainingIsRestored) {
  const Changes training{"model=norms_under_test",
                         "train.sync_batch_norm=true",
                         "train.ema_decay=0.9",
                         "train.clip_norm=0.5",
                         "train.precision=fp16",
                         "train.loss_scale={initial: 268435456, growth_interval: 3}",
                         "train.early_stop={metric: loss, best: lowest, patience: 100}",
                         "evaluate.every_steps=5"};
  for (const std::string strategy : {"all_reduce", "sharded"}) {
    auto changes = training;
    changes.push_back("strategy=" + strategy);
    const auto whole = run_interrupted(2, new_folder(), changes);
    ASSERT_THAT(whole.errors, Each(""));
    auto again = changes;
    again.emplace_back("checkpoint.resume=auto");
    for (const std::int64_t stop : {1, 3, 4, 9, 14}) {
      const auto folder = new_folder();
      run_interrupted(2, folder, changes, stop);
      SCOPED_TRACE(strategy + " stopped after " + std::to_string(stop));
      expect_resumed(stop + 1, run_interrupted(2, folder, again), whole);
    }
  }
}

// One rank only, because ranks that are threads must not draw random numbers.
TEST(Resume, DropoutContinuesWithTheSameRandomNumbers) {
  const Changes dropout{"model={name: norms_under_test, dropout: 0.3}", "train.precision=bf16"};
  const auto whole = run_interrupted(1, new_folder(), dropout);
  EXPECT_FALSE(
      at::equal(run_interrupted(1, new_folder(), {"model=norms_under_test", dropout[1]}).weights[0], whole.weights[0]));
  for (const std::int64_t stop : {2, 3, 10}) {
    const auto folder = new_folder();
    run_interrupted(1, folder, dropout, stop);
    expect_resumed(stop + 1, run_interrupted(1, folder, {dropout[0], dropout[1], "checkpoint.resume=auto"}), whole);
  }
}

TEST(Resume, DropoutIsRefusedIfThreadsWouldShareOneGenerator) {
  const std::string dropout = "model={name: norms_under_test, dropout: 0.3}", said = "draws random numbers";
  EXPECT_THAT(run_interrupted(2, new_folder(), {dropout}).errors, Each(HasSubstr(said)));
  EXPECT_THAT(run_interrupted(1, new_folder(), {dropout, "train.data_parallel=2"}).errors, Each(HasSubstr(said)));
  EXPECT_THAT(run_interrupted(2, new_folder(), {"model=norms_under_test", "train.data_parallel=2"}).errors, Each(""));
}

TEST(Resume, ARunThatStoppedEarlyHasNothingLeftToDo) {
  const Changes early{"train.early_stop={metric: loss, best: lowest, patience: 0, min_delta: 99}",
                      "evaluate.every_steps=3", "checkpoint.every_epochs=1", "checkpoint.resume=auto"};
  const auto folder = new_folder();
  const auto first = run_interrupted(2, folder, early);
  EXPECT_EQ(first.results[0].steps, 4) << "the tests after steps 3 and 4";
  EXPECT_THAT(steps_saved(folder), ElementsAre(4));
  const auto second = run_interrupted(2, folder, early);
  EXPECT_THAT(second.began_after, Each(4));
  EXPECT_EQ(second.results[0].steps, 4);
  EXPECT_EQ(second.results[0].early_stop, first.results[0].early_stop);
  EXPECT_EQ(second.results[0].test, first.results[0].test);
  EXPECT_TRUE(at::equal(second.weights[0], first.weights[0]));
}

TEST(Resume, KeepsTheBestOfTestsWithinEpochs) {
  const auto kept = run_interrupted(2, new_folder(),
                                    {"evaluate.every_steps=3", "evaluate.every_epochs=0", "checkpoint.keep_best=100",
                                     "checkpoint.best_by=loss", "checkpoint.best_is=lowest"});
  EXPECT_THAT(steps_saved(kept.folder), ElementsAre(16, 15, 12, 9, 6, 3));
}

TEST(Resume, KeepsTheLastAndTheBest) {
  // The loss decreases with each test, after steps 4, 8, 12 and 16.
  const auto kept_by = [](const std::string& best_is) {
    const auto kept = run_interrupted(2, new_folder(),
                                      {"checkpoint.keep_best=1", "checkpoint.keep_last=1", "checkpoint.best_by=loss",
                                       "checkpoint.best_is=" + best_is, "optimizer.lr=0.02"});
    return steps_saved(kept.folder);
  };
  EXPECT_THAT(kept_by("lowest"), ElementsAre(16));
  EXPECT_THAT(kept_by("highest"), ElementsAre(16, 4));
  EXPECT_THAT(run_interrupted(2, new_folder(), {"checkpoint.keep_best=1", "checkpoint.best_by=auc"}).errors,
              Each(HasSubstr("checkpoint.best_by is \"auc\", which none of evaluate.meters measures")));
}

TEST(Resume, SavesEveryFewEpochs) {
  EXPECT_THAT(steps_saved(run_interrupted(1, new_folder(), {"checkpoint.every_epochs=3"}).folder), ElementsAre(16, 12));
}

TEST(Resume, NonFiniteValuesAreNeverSaved) {
  // Both saves come long before the regular check of the guard. The second run is stopped after step 9, where it would
  // be saved in any case.
  const auto spoil = spoil_in(7);
  for (const std::string often : {"checkpoint.every_steps=5", "checkpoint.every_steps=1"}) {
    const auto folder = new_folder();
    const auto diverged = run_interrupted(2, folder, {kOwnCopies, often, "checkpoint.keep_last=1"}, -1, spoil);
    EXPECT_THAT(diverged.errors, Each(HasSubstr("training has diverged: in step 7 the loss is not finite")));
    EXPECT_THAT(steps_saved(folder), Each(::testing::Lt(7)));
    EXPECT_THAT(steps_saved(folder), ::testing::SizeIs(1)) << "the good checkpoint is kept";
  }
  const auto stopped = new_folder();
  EXPECT_THAT(run_interrupted(2, stopped, {kOwnCopies}, 8, spoil).errors,
              Each(HasSubstr("in step 7 the loss is not finite")));
  EXPECT_THAT(steps_saved(stopped), ElementsAre());
}

// Early stopping is on, the best checkpoint is kept, and the run diverges between two tests or in the step of a test.
TEST(Resume, ADivergedRunResumesFromItsBestCheckpoint) {
  const Changes watched{kOwnCopies,
                        "evaluate.every_steps=3",
                        "evaluate.every_epochs=0",
                        "checkpoint.keep_best=1",
                        "checkpoint.keep_last=1",
                        "checkpoint.best_by=loss",
                        "checkpoint.best_is=lowest",
                        "checkpoint.resume=auto",
                        "watch.nan_guard.every_steps=1000",
                        "train.early_stop={metric: loss, best: lowest, patience: 1, min_delta: 1}"};
  const auto whole = run_interrupted(2, new_folder(), watched);
  ASSERT_THAT(whole.results[0].early_stop, HasSubstr("no better in 2 tests since"));
  ASSERT_GT(whole.results[0].steps, 8);
  for (const std::int64_t bad_step : {7, 8, 9}) {
    const auto folder = new_folder();
    const auto diverged = run_interrupted(2, folder, watched, -1, spoil_in(bad_step));
    EXPECT_THAT(diverged.errors, Each(HasSubstr("training has diverged: in step " + std::to_string(bad_step))));
    EXPECT_THAT(steps_saved(folder), ElementsAre(6)) << bad_step;
    const auto rest = run_interrupted(2, folder, watched);
    expect_resumed(6, rest, whole);
    EXPECT_EQ(rest.results[0].early_stop, whole.results[0].early_stop) << bad_step;
  }
}

TEST(Resume, RefusesTheCheckpointOfAnotherRunOnEveryRank) {
  const auto folder = new_folder();
  run_interrupted(1, folder, {}, 3);
  const auto refused = [&](const std::string& change) {
    return run_interrupted(2, folder, {"checkpoint.resume=auto", change}).errors;
  };
  EXPECT_THAT(refused("seed=4"), Each(HasSubstr("its seed is 3, but this run's is 4")));
  EXPECT_THAT(refused("train.global_batch_size=64"),
              Each(HasSubstr("train.global_batch_size is 32, but this run's is 64")));
  EXPECT_THAT(refused("dataset.seed=77"), Each(HasSubstr("its dataset is")));
  EXPECT_THAT(refused("loader.shuffle=false"), Each(HasSubstr("its loader.shuffle is true")));
  EXPECT_THAT(refused("model.hidden=[17]"), Each(HasSubstr("another model")));
  EXPECT_THAT(refused("optimizer=sgd"), Each(HasSubstr("another optimizer")));
  EXPECT_THAT(refused("schedule=constant"), Each(HasSubstr("another schedule")));
  const auto slower = run_interrupted(2, folder, {"checkpoint.resume=auto", "optimizer.lr=0.01"});
  EXPECT_THAT(slower.errors, Each("")) << "this key may change";
  EXPECT_THAT(slower.began_after, Each(4));
}

TEST(Resume, TheTimeLimitStopsAndSaves) {
  const auto folder = new_folder();
  const auto limited = run_interrupted(2, folder, {"train.max_seconds=0.000001"});
  EXPECT_TRUE(limited.results[0].stopped);
  EXPECT_TRUE(limited.results[0].time_up);
  EXPECT_EQ(limited.results[0].steps, 2);
  expect_resumed(2, run_interrupted(2, folder, {"checkpoint.resume=auto"}), run_interrupted(2, new_folder()));
}

TEST(Resume, CheckpointsAfterTheResumedOneAreSetAside) {
  const auto folder = new_folder();
  run_interrupted(1, folder, {"checkpoint.every_steps=5", "checkpoint.keep_last=100"});
  const auto path = CheckpointFolder(folder.checkpoints()).final_path(10);
  run_interrupted(1, folder, {"checkpoint.resume=" + path, "optimizer.lr=0.001"}, 1);
  EXPECT_THAT(steps_saved(folder), ElementsAre(12, 10, 5)) << "15 and 16 belong to the abandoned run";
  EXPECT_TRUE(fs::exists(folder.checkpoints() + "/set-aside-step-00000016"));
}

}  // namespace
}  // namespace phalanx

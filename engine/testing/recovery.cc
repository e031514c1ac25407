// SPDX-License-Identifier: Apache-2.0
#include "engine/testing/recovery.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include "engine/checkpoint/folder.h"
#include "framework/base/error.h"
#include "framework/base/storage/crc32c.h"
#include "framework/comm/mesh/broken_replicas.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

const Changes kChanges{
    "determinism=world_size_invariant", "faults.on_lost_rank=shrink", "train.virtual_shards=12", "train.ema_decay=0.9",
    "evaluate.every_steps=2",           "checkpoint.every_steps=3",   "watch.every_steps=1"};

struct PlannedEnd {};

// The work of a rank, whatever becomes of the others.
class SurvivingRank {
 public:
  SurvivingRank(const ExperimentConfig& config, const Splits& splits, const RunFolder& folder,
                std::vector<PlannedLoss> losses, TakenSamples* taken)
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
      const auto stranded = stranded_ranks(members_, left, ranks_per_replica(shape));
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

  void end_if(bool now, const PlannedLoss& loss) const {
    if (now && loss.rank == number_) throw PlannedEnd();
  }

  const ExperimentConfig& config_;
  const Splits& splits_;
  const RunFolder& folder_;
  std::vector<PlannedLoss> losses_;
  TakenSamples* taken_;
  std::shared_ptr<Recovery> recovery_ = std::make_shared<Recovery>();
  int number_ = 0;
  std::vector<int> members_{};  // the numbers of the ranks of its world
  std::int64_t step_ = 0;
};

}  // namespace

Changes plus(Changes changes, const Changes& more) {
  changes.insert(changes.end(), more.begin(), more.end());
  return changes;
}

void TakenSamples::add(const State& state, int ranks) {
  const std::lock_guard lock(mutex_);
  Step& step = steps_[state.step + 1];
  if (step.ranks != ranks) step = {.ranks = ranks, .epoch = state.epoch, .samples = state.batch.global_rows};
  const at::Tensor rows = state.batch.inputs.at(0).contiguous();
  const auto bytes = rows.nbytes() / static_cast<std::size_t>(rows.size(0));
  for (std::int64_t i = 0; i < state.batch.valid; ++i) {
    step.checksums.push_back(crc32c(rows[i].data_ptr(), bytes));
  }
}

std::vector<std::int64_t> TakenSamples::sizes(std::int64_t first) const {
  std::vector<std::int64_t> all;
  for (auto step = steps_.lower_bound(first); step != steps_.end(); ++step) all.push_back(step->second.samples);
  return all;
}

std::vector<std::uint32_t> TakenSamples::epoch(std::int64_t number) const {
  std::vector<std::uint32_t> all;
  for (const auto& [_, step] : steps_) {
    if (step.epoch == number) std::ranges::copy(step.checksums, std::back_inserter(all));
  }
  std::ranges::sort(all);
  return all;
}

Finished run_losing(int ranks, const std::vector<PlannedLoss>& losses, const Changes& more,
                    std::vector<std::string>* errors, TakenSamples* taken) {
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

Finished run_with_newcomers(const Growth& growth, const Changes& more, TakenSamples* taken) {
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

std::vector<std::int64_t> steps_of(const Finished& run, const std::string& split) {
  return column<std::int64_t>(metrics(run, split), "step");
}

at::Tensor resumed_weights(const Finished& from, std::int64_t step, int ranks, const Changes& changes) {
  const auto path = CheckpointFolder(from.folder.checkpoints()).final_path(step);
  return final_weights(run_losing(ranks, {}, plus(changes, {"checkpoint.resume=" + path})));
}

}  // namespace phalanx::testing

// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/evaluation.h"

#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>

#include <cmath>
#include <string>
#include <utility>

#include "datasets/prefetching_loader.h"
#include "datasets/sampler.h"
#include "datasets/subset.h"
#include "framework/base/console.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"

namespace phalanx {

namespace {

// Sets the order of loader.sampler, and the treatment of the last batch.
void order_by(const ExperimentConfig& config, const Dataset& split, DistributedSampler::Options& options) {
  const auto& loader = config.loader;
  options.shuffle = loader.shuffle;
  options.order = loader.sampler.make({.dataset = split, .global_batch = options.global_batch, .seed = options.seed});
  if (loader.last_batch == "pad") options.last = LastBatch::kPad;
  if (loader.last_batch != "drop") return;
  options.last = LastBatch::kDrop;
  const auto samples = options.order ? options.order->size() : options.samples;
  if (samples >= options.global_batch) return;
  throw ConfigError("loader.last_batch: drop leaves nothing of an epoch of " + std::to_string(samples) +
                    " samples, which do not fill a batch of train.global_batch_size: " +
                    std::to_string(options.global_batch) + "; use smaller or pad, or a smaller batch");
}

}  // namespace

DistributedSampler::Options split_options(const Dataset& split, std::int64_t global_batch,
                                          const ExperimentConfig& config, SplitUse use, const Communicator& group,
                                          std::shared_ptr<const std::vector<std::int64_t>> shares) {
  const bool invariant = config.determinism == "world_size_invariant";
  DistributedSampler::Options options{.samples = split.size(),
                                      .global_batch = global_batch,
                                      .seed = config.seed,
                                      .shuffle = false,
                                      .rank = group.rank(),
                                      .size = group.size(),
                                      .parts = invariant ? static_cast<int>(config.train.virtual_shards) : 0,
                                      .shares = std::move(shares)};
  if (use == SplitUse::kTraining) order_by(config, split, options);
  return options;
}

std::unique_ptr<Loader> make_split_loader(const std::shared_ptr<const Dataset>& split, std::int64_t global_batch,
                                          const ExperimentConfig& config, SplitUse use, const Communicator& group,
                                          std::shared_ptr<const std::vector<std::int64_t>> shares) {
  auto loader = make_loader(split, split_options(*split, global_batch, config, use, group, std::move(shares)));
  const auto prefetch = config.loader.prefetch;
  if (prefetch == 0) return loader;
  return make_prefetching(std::move(loader), prefetch, static_cast<int>(config.loader.threads),
                          parse_bytes(config.loader.prefetch_bytes));
}

Splits with_held_out(const Splits& splits, const ExperimentConfig& config) {
  const double share = config.evaluate.validation;
  return share > 0 ? hold_out(splits, share, config.seed) : splits;
}

Evaluation::Evaluation(const ExperimentConfig& config, const Splits& splits, const Preparation& preparation, Step& step,
                       const Mesh& mesh)
    : guarded_(config.watch.nan_guard.every_steps > 0), evaluator_(step), mesh_(mesh), meters_(config.evaluate.meters) {
  const auto add = [&](const char* name, const std::shared_ptr<const Dataset>& split) {
    if (!split) return;
    loaders_[name] = preparation.of(
        make_split_loader(split, config.evaluate.global_batch_size, config, SplitUse::kTesting, *mesh_.samples()));
    samples_[name] = split->size();
  };
  add("validation", splits.validation);
  add("test", splits.test);
  evaluator_.on(Event::kForwardCriterion, HookPhase::kMeasure, [this](State& state) {
    meters_.add(state.batch, state.result);
    look_at(state.result);
  });
}

Metrics Evaluation::run(const std::string& split, const State& state) {
  not_finite_ = at::Tensor();
  evaluator_.run(*loaders_.at(split), {.epoch = state.epoch, .step = state.step});
  diverged_ = guarded_ && any_not_finite();
  Metrics metrics = meters_.take(*mesh_.control(kBatchAxes));
  warn_of(split, metrics);
  return metrics;
}

// Does not wait for the device. any_not_finite() waits for it once.
void Evaluation::look_at(const Step::Result& result) {
  if (!guarded_ || result.elsewhere()) return;
  const at::Tensor bad = at::isfinite(result.loss.detach()).all().logical_not();
  not_finite_ = not_finite_.defined() ? not_finite_.logical_or(bad) : bad;
}

bool Evaluation::any_not_finite() {
  const bool mine = not_finite_.defined() && not_finite_.item<bool>();
  const at::Tensor any = at::full({1}, mine ? 1 : 0, at::kLong);
  mesh_.control()->all_reduce(any, Reduction::kMax).wait();
  return any.item<std::int64_t>() != 0;
}

void Evaluation::warn_of(const std::string& split, const Metrics& metrics) {
  if (mesh_.control()->rank() != 0) return;
  for (const auto& [name, value] : metrics) {
    if (std::isfinite(value) || !warned_of_.insert(split + "/" + name).second) continue;
    const std::string text = "the " + name + " of the " + split + " split is " + std::to_string(value);
    log_warning() << text;
    standard_error().write("Warning: " + text + "\n");
  }
}

void throw_diverged(const std::string& split) {
  throw Error("the loss of the " + split +
              " split is not finite: look for values in its samples that are not finite, or for weights that have "
              "diverged (lower optimizer.lr or set train.clip_norm); watch.nan_guard: {every_steps: 0} only warns");
}

}  // namespace phalanx

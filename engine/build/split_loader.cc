// SPDX-License-Identifier: Apache-2.0
#include "engine/build/split_loader.h"

#include <string>
#include <utility>

#include "datasets/prefetching_loader.h"
#include "datasets/subset.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

// Sets the order of loader.sampler, and the treatment of the last batch.
void order_by(const ExperimentConfig& config, const Dataset& split, BatchSampler::Options& options) {
  const auto& loader = config.loader;
  options.shuffle = loader.shuffle;
  options.order =
      loader.sampler.make({.dataset = split, .global_batch = config.train.global_batch_size, .seed = options.seed});
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

BatchSampler::Options split_options(const Dataset& split, std::int64_t global_batch, const ExperimentConfig& config,
                                    SplitUse use, const Communicator& group,
                                    std::shared_ptr<const std::vector<std::int64_t>> shares, std::int64_t skipped) {
  const bool invariant = config.determinism == "world_size_invariant";
  BatchSampler::Options options{.samples = split.size(),
                                .global_batch = global_batch,
                                .seed = config.seed,
                                .shuffle = false,
                                .rank = group.rank(),
                                .size = group.size(),
                                .parts = invariant ? static_cast<int>(config.train.virtual_shards) : 0,
                                .shares = std::move(shares),
                                .skipped = skipped};
  if (use == SplitUse::kTraining) order_by(config, split, options);
  return options;
}

std::unique_ptr<Loader> make_split_loader(const std::shared_ptr<const Dataset>& split, std::int64_t global_batch,
                                          const ExperimentConfig& config, SplitUse use, const Communicator& group,
                                          std::shared_ptr<const std::vector<std::int64_t>> shares,
                                          std::int64_t skipped) {
  auto loader = make_loader(split, split_options(*split, global_batch, config, use, group, std::move(shares), skipped));
  const auto prefetch = config.loader.prefetch;
  if (prefetch == 0) return loader;
  return make_prefetching(std::move(loader), prefetch, static_cast<int>(config.loader.threads),
                          parse_bytes(config.loader.prefetch_bytes));
}

Splits with_held_out(const Splits& splits, const ExperimentConfig& config) {
  const double share = config.evaluate.validation;
  return share > 0 ? hold_out(splits, share, config.seed) : splits;
}

}  // namespace phalanx

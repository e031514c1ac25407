// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "datasets/loader.h"
#include "datasets/prefetching_loader.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "launch/program.h"
#include "tools/data/commands.h"

namespace phalanx {

void print_speed(const ExperimentConfig& config, std::int64_t samples) {
  constexpr int kWarmUp = 2;  // batches that allocate the memory of later ones
  keep_freed_memory();
  if (config.launch.threads > 0) at::set_num_threads(static_cast<int>(config.launch.threads));
  const auto split = config.dataset.make().train;
  const auto batch_size = config.train.global_batch_size;
  BatchSampler::Options options{
      .samples = split->size(), .global_batch = batch_size, .seed = config.seed, .shuffle = config.loader.shuffle};
  options.order = config.loader.sampler.make({.dataset = *split, .global_batch = batch_size, .seed = config.seed});
  options.last = LastBatch::kPad;  // all batches have the same size
  auto loader = make_loader(split, options);
  if (config.loader.prefetch > 0) {
    loader = make_prefetching(std::move(loader), config.loader.prefetch, static_cast<int>(config.loader.threads),
                              parse_bytes(config.loader.prefetch_bytes));
  }
  Batch batch;
  std::int64_t epoch = 0, read = 0;
  const auto next = [&] {
    while (!loader->next(batch)) loader->start_epoch(++epoch);
  };
  loader->start_epoch(epoch);
  for (int i = 0; i < kWarmUp; ++i) next();
  const auto start = std::chrono::steady_clock::now();
  while (read < samples) {
    next();
    read += batch.valid;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%lld samples in batches of %lld: %.0f samples/s\n", static_cast<long long>(read),
              static_cast<long long>(batch_size), static_cast<double>(read) / seconds);
}

}  // namespace phalanx

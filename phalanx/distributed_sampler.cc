// SPDX-License-Identifier: Apache-2.0
#include "phalanx/distributed_sampler.h"

#include <torch/serialize/archive.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "datasets/sampler.h"

namespace phalanx {

struct DistributedSampler::State {
  std::size_t samples;
  int rank, ranks;
  DistributedSamplerOptions options;
  std::int64_t epoch = 0;
  std::int64_t next_batch = 0;
  bool restored = false;  // the next reset() keeps the position
  std::size_t batch_size = 0;
  std::optional<BatchSampler> batches{};  // for batch_size

  void use_batch_size(std::size_t size) {
    if (batches && batch_size == size) return;
    if (size == 0) throw std::invalid_argument("DistributedSampler: batches of 0 samples");
    if (batches && next_batch > 0) {
      throw std::invalid_argument("DistributedSampler: batches of " + std::to_string(size) +
                                  " samples in an epoch of " + std::to_string(batch_size));
    }
    batch_size = size;
    batches.emplace(BatchSampler::Options{.samples = static_cast<std::int64_t>(samples),
                                          .global_batch = static_cast<std::int64_t>(size) * ranks,
                                          .seed = options.seed,
                                          .shuffle = options.shuffle,
                                          .rank = rank,
                                          .size = ranks,
                                          .last = options.drop_last ? LastBatch::kDrop : LastBatch::kSmaller});
  }
};

DistributedSampler::DistributedSampler(std::size_t samples, const World& world,
                                       const DistributedSamplerOptions& options)
    : DistributedSampler(samples, world.rank(), world.size(), options) {}

DistributedSampler::DistributedSampler(std::size_t samples, int rank, int ranks,
                                       const DistributedSamplerOptions& options)
    : state_(std::make_unique<State>(State{.samples = samples, .rank = rank, .ranks = ranks, .options = options})) {
  if (samples == 0) throw std::invalid_argument("DistributedSampler: the dataset has no samples");
  if (rank < 0 || rank >= ranks) {
    throw std::invalid_argument("DistributedSampler: rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  }
}

DistributedSampler::~DistributedSampler() = default;
DistributedSampler::DistributedSampler(DistributedSampler&&) noexcept = default;
DistributedSampler& DistributedSampler::operator=(DistributedSampler&&) noexcept = default;

void DistributedSampler::reset(std::optional<std::size_t> samples) {
  if (std::exchange(state_->restored, false)) return;
  if (samples && *samples != state_->samples) {
    if (*samples == 0) throw std::invalid_argument("DistributedSampler: the dataset has no samples");
    state_->samples = *samples;
    state_->batches.reset();
  }
  set_epoch(state_->epoch + (state_->next_batch > 0 ? 1 : 0));
}

void DistributedSampler::set_epoch(std::int64_t epoch) {
  state_->epoch = epoch;
  state_->next_batch = 0;
  state_->restored = false;
}

std::int64_t DistributedSampler::epoch() const { return state_->epoch; }

std::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  state_->use_batch_size(batch_size);
  auto& batches = *state_->batches;
  if (state_->next_batch >= batches.batches()) return std::nullopt;
  const auto share = batches.share(state_->epoch, state_->next_batch++);
  const auto rows = (share.global_rows + state_->ranks - 1) / state_->ranks;  // on every rank
  std::vector<std::size_t> samples(share.indices.begin(), share.indices.begin() + share.valid);
  while (static_cast<std::int64_t>(samples.size()) < rows) {
    samples.push_back(static_cast<std::size_t>(share.indices.front()));
  }
  return samples;
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  archive.write("epoch", c10::IValue(state_->epoch));
  archive.write("next_batch", c10::IValue(state_->next_batch));
  archive.write("batch_size", c10::IValue(static_cast<std::int64_t>(state_->batch_size)));
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  const auto read = [&](const char* key) {
    c10::IValue value;
    archive.read(key, value);
    return value.toInt();
  };
  state_->batches.reset();
  if (const auto size = read("batch_size"); size > 0) state_->use_batch_size(static_cast<std::size_t>(size));
  state_->epoch = read("epoch");
  state_->next_batch = read("next_batch");
  state_->restored = true;
}

}  // namespace phalanx

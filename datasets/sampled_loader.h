// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "datasets/loader.h"
#include "datasets/sampler.h"

namespace phalanx {

/// The base of loaders that read the shares of a BatchSampler one after the other.
class SampledLoader : public Loader {
 public:
  explicit SampledLoader(const BatchSampler::Options& options)
      : sampler_(options), seed_(static_cast<std::uint64_t>(options.seed)) {}

  std::int64_t batches() const final { return sampler_.batches(); }

  void start_epoch(std::int64_t epoch, std::int64_t cursor) final {
    epoch_ = epoch;
    cursor_ = cursor;
  }

  bool next(Batch& batch) final {
    if (cursor_ == sampler_.batches()) return false;
    const auto share = sampler_.share(epoch_, cursor_);
    read(share.indices, seed_of_changes(seed_, epoch_), batch);
    batch.valid = share.valid;
    batch.global_rows = share.global_rows;
    batch.first_row = share.first_row;
    ++cursor_;  // only after a successful read, so that a failed one can be retried
    return true;
  }

 private:
  /// Sets the tensors of `batch` to these samples, with the random changes that follow from `seed`.
  virtual void read(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) = 0;

  BatchSampler sampler_;
  std::uint64_t seed_;
  std::int64_t epoch_ = 0;
  std::int64_t cursor_ = 0;
};

}  // namespace phalanx

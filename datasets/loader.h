// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "datasets/dataset.h"
#include "datasets/sampler.h"
#include "framework/base/batch.h"

namespace phalanx {

/// Iterates over one rank's shares of the batches of an epoch. next() returns false after the same number of batches on
/// every rank.
///
///     loader->start_epoch(epoch);
///     for (Batch batch; loader->next(batch);) ...
///
/// Not thread-safe.
class Loader {
 public:
  virtual ~Loader() = default;

  virtual std::int64_t batches() const = 0;  // per epoch

  /// Moves to batch `cursor` of an epoch, 0 <= cursor <= batches(). A new loader is at the start of epoch 0.
  virtual void start_epoch(std::int64_t epoch, std::int64_t cursor = 0) = 0;

  /// Fills all fields of `batch`, or returns false at the end of the epoch and does not change `batch`. The batch
  /// belongs to the caller until the next call, which writes to the same tensors unless someone else still holds them.
  virtual bool next(Batch& batch) = 0;
};

/// Returns the seed that a loader with seed `seed` passes to Dataset::gather() in `epoch`.
std::uint64_t seed_of_changes(std::uint64_t seed, std::int64_t epoch);

/// Gathers the shares of `options` from `dataset` directly into the batch's tensors. Random changes of a sample are a
/// pure function of (options.seed, epoch, sample). options.samples may be 0, which means the dataset's size; any other
/// value must equal that size, or std::invalid_argument is thrown.
std::unique_ptr<Loader> make_loader(std::shared_ptr<const Dataset> dataset, BatchSampler::Options options);

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "datasets/dataset.h"
#include "datasets/sampler.h"
#include "framework/base/batch.h"

namespace phalanx {

/// The batches of an epoch, one rank's shares. Every rank's next() returns false after the same number of batches.
///
///     loader->start_epoch(epoch);
///     for (Batch batch; loader->next(batch);) ...
///
/// Not thread-safe.
class Loader {
 public:
  virtual ~Loader() = default;

  virtual std::int64_t batches() const = 0;  // per epoch

  /// Goes to batch `cursor` of an epoch, 0 <= cursor <= batches(). Without it the loader stands at the start of epoch
  /// 0.
  virtual void start_epoch(std::int64_t epoch, std::int64_t cursor = 0) = 0;

  /// Fills all of `batch`, or returns false at the end of the epoch and leaves it alone. The batch is the caller's
  /// until the next call, which writes into the same tensors unless someone else still holds them.
  virtual bool next(Batch& batch) = 0;
};

/// The seed with which a loader of this seed has samples changed in an epoch (Dataset::gather()).
std::uint64_t seed_of_changes(std::uint64_t seed, std::int64_t epoch);

/// Gathers the shares of `options` from `dataset` straight into the batch's tensors. What the dataset changes at random
/// is a pure function of (options.seed, epoch, sample). options.samples may be left 0: it is the dataset's size, and
/// std::invalid_argument is thrown when it says otherwise.
std::unique_ptr<Loader> make_loader(std::shared_ptr<const Dataset> dataset, DistributedSampler::Options options);

}  // namespace phalanx

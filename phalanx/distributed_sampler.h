// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/data/samplers/base.h>
#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "phalanx/world.h"

namespace phalanx {

struct DistributedSamplerOptions {
  std::int64_t seed = 0;   // the same on all ranks
  bool shuffle = true;     // false: the order of the dataset in every epoch
  bool drop_last = false;  // drops the samples at the end of an epoch that do not fill a batch on every rank
};

/// The samples of one rank, for torch::data::make_data_loader():
///
///     auto loader = torch::data::make_data_loader(dataset, phalanx::DistributedSampler(dataset.size().value(), world),
///                                                 torch::data::DataLoaderOptions().batch_size(32));
///
/// An epoch is one order of all samples, a pure function of (seed, epoch), as in Phalanx's own loaders. With P ranks
/// and batches of B samples, batch i of all ranks together is samples [i P B, (i + 1) P B) of that order, and rank r
/// has the r-th part of it. So the ranks compute the same as one process with batches of P B samples.
///
/// All ranks get the same number of batches of the same sizes. Unless `drop_last`, a rank whose part of the last batch
/// is one sample shorter than on other ranks gets one sample twice.
///
/// Each reset() after samples were taken begins the next epoch; a data loader does that in begin(). save() writes the
/// epoch and the position in it; after load(), the first reset() keeps this position, so that a loader goes on from
/// there.
///
/// Not thread-safe. Movable, not copyable.
class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  /// `samples`: number of samples of the dataset, at least 1. Throws std::invalid_argument.
  DistributedSampler(std::size_t samples, const World& world, const DistributedSamplerOptions& options = {});
  DistributedSampler(std::size_t samples, int rank, int ranks, const DistributedSamplerOptions& options = {});
  ~DistributedSampler() override;
  DistributedSampler(DistributedSampler&&) noexcept;
  DistributedSampler& operator=(DistributedSampler&&) noexcept;

  /// Begins the next epoch, or the same one if none of its samples were taken. A value changes the number of samples.
  void reset(std::optional<std::size_t> samples = std::nullopt) override;

  /// Begins `epoch` from its start.
  void set_epoch(std::int64_t epoch);
  std::int64_t epoch() const;

  /// Returns the next batch, or nothing at the end of the epoch. `batch_size` must not change within an epoch: throws
  /// std::invalid_argument.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;

  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "datasets/dataset.h"
#include "framework/base/registry.h"

namespace phalanx {

/// Which samples an epoch takes, one after the other: a row of size() positions, each with the index of a sample.
///
/// It is a pure function of what the order was made of and the epoch, equal on every platform. It is made by windows,
/// each of which can be made without those before it: so a run that is resumed in the middle of an epoch, and a rank
/// that needs a part of it, make no more than they read. Thread-safe.
class SampleOrder {
 public:
  virtual ~SampleOrder() = default;

  virtual std::int64_t size() const = 0;    // positions in every epoch, > 0
  virtual std::int64_t window() const = 0;  // positions that are made together, > 0

  /// Makes `samples` the window that begins at position `number` * window(): shorter than others where the epoch ends.
  virtual void fill(std::int64_t epoch, std::int64_t number, std::vector<std::int64_t>& samples) const = 0;
};

/// What orders are made of. `dataset` need not outlive the order.
struct SampleOrderInput {
  const Dataset& dataset;
  std::int64_t global_batch = 0;  // samples per step over all ranks, > 0
  std::int64_t seed = 0;
};

/// Samplers by name. Factories throw ConfigError where the dataset cannot be ordered so, and DataError for files. Null:
/// as loader.shuffle says.
using Samplers = Registry<std::shared_ptr<const SampleOrder>(const SampleOrderInput&)>;

/// The class of each sample, all of which lie in [0, classes). Reads samples whose dataset does not know their class
/// otherwise. Throws ConfigError, which names `sampler`, where samples have no class or more than one.
std::vector<std::int64_t> labels_of(const Dataset& dataset, const char* sampler);

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "datasets/dataset.h"
#include "framework/base/registry.h"

namespace phalanx {

/// The sequence of samples of an epoch: size() positions, each with the index of a sample.
///
/// The order is a pure function of the arguments it was made from and the epoch, and equal on every platform. It is
/// made in windows, each of which can be made without the ones before it. So a run that resumes in the middle of an
/// epoch, and a rank that needs only part of it, make only the windows they read. Thread-safe.
class SampleOrder {
 public:
  virtual ~SampleOrder() = default;

  virtual std::int64_t size() const = 0;    // positions in every epoch, > 0
  virtual std::int64_t window() const = 0;  // positions that are made together, > 0

  /// Makes `samples` the window that begins at position `number` * window(). The last window of an epoch may be
  /// shorter.
  virtual void fill(std::int64_t epoch, std::int64_t number, std::vector<std::int64_t>& samples) const = 0;
};

/// The arguments from which orders are made. The order may outlive `dataset`.
struct SampleOrderInput {
  const Dataset& dataset;
  std::int64_t global_batch = 0;  // samples per step over all ranks, > 0
  std::int64_t seed = 0;
};

/// Samplers by name. Factories throw ConfigError if the dataset cannot be ordered that way, and DataError for bad
/// files. A factory returns null to keep the order that loader.shuffle selects.
using Samplers = Registry<std::shared_ptr<const SampleOrder>(const SampleOrderInput&)>;

/// Returns the class of each sample, in [0, classes). Reads the samples if the dataset does not know their classes
/// otherwise. Throws ConfigError, which names `sampler`, if samples have no class or more than one.
std::vector<std::int64_t> labels_of(const Dataset& dataset, const char* sampler);

}  // namespace phalanx

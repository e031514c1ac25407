// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/skipping_dataset.h"
#include "engine/experiment/config.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The numbers of samples of all splits that could not be read.
struct Unreadable {
  std::int64_t samples = 0;   // each counts once per split and rank that tried to read it
  std::int64_t replaced = 0;  // rows of batches that other samples filled instead
  std::string first{};        // reason and file of the first one; empty: there is none
};

/// Writes a warning with the counts and the first file to standard error, unless no sample was skipped.
void warn_of_skipped_samples(const Unreadable& unreadable);

/// Splits whose unreadable samples are skipped and counted, if loader.on_error asks for that.
class UnreadableSamples {
 public:
  UnreadableSamples(const LoaderConfig& config, const Splits& splits);

  const Splits& splits() const { return splits_; }

  /// Starts the count of replaced rows. Rows that were read before, only for their classes, were in no batch.
  void start();

  /// Returns the samples that were skipped by all ranks which divide them; nullopt if an unreadable sample ends the
  /// run. Collective.
  std::optional<Unreadable> count(Communicator& ranks) const;

 private:
  std::shared_ptr<const Dataset> watched(const LoaderConfig& config, const std::shared_ptr<const Dataset>& split);

  std::vector<std::shared_ptr<const SkippingDataset>> watched_;  // empty: no sample may be skipped
  Splits splits_;
  std::int64_t replaced_before_ = 0;
};

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/tolerant.h"
#include "engine/experiment/config.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Counts the samples of all splits that could not be read.
struct Unreadable {
  std::int64_t samples = 0;   // each once a split, on every rank that has met it
  std::int64_t replaced = 0;  // rows of batches in which others were read instead
  std::string first{};        // the reason and the file of the first one; empty: there is none
};

/// Writes a warning with the counts and the first file to standard error, unless no sample was skipped.
void tell_skipped(const Unreadable& unreadable);

/// Splits of which samples that cannot be read are skipped and counted, where loader.on_error says so.
class UnreadableSamples {
 public:
  UnreadableSamples(const LoaderConfig& config, const Splits& splits);

  const Splits& splits() const { return splits_; }

  /// Counts rows from here on: those that were read for their classes alone are in no batch.
  void start();

  /// Returns the samples that ranks which divide them have skipped in all; none: an unreadable sample ends the run.
  /// Collective.
  std::optional<Unreadable> count(Communicator& ranks) const;

 private:
  std::shared_ptr<const Dataset> watched(const LoaderConfig& config, const std::shared_ptr<const Dataset>& split);

  std::vector<std::shared_ptr<const TolerantDataset>> watched_;  // empty: nothing may be skipped
  Splits splits_;
  std::int64_t replaced_before_ = 0;
};

}  // namespace phalanx

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/tolerant.h"
#include "engine/experiment/config.h"
#include "engine/experiment/experiment.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Splits of which samples that cannot be read are skipped and counted, where loader.on_error says so.
class UnreadableSamples {
 public:
  UnreadableSamples(const LoaderConfig& config, const Splits& splits);

  const Splits& splits() const { return splits_; }

  /// Counts rows from here on: those that were read for their classes alone are in no batch.
  void start();

  /// What ranks that divide the samples among them have skipped in all; none: what cannot be read ends the run.
  /// Collective.
  std::optional<Unreadable> count(Communicator& ranks) const;

 private:
  std::shared_ptr<const Dataset> watched(const LoaderConfig& config, const std::shared_ptr<const Dataset>& split);

  std::vector<std::shared_ptr<const TolerantDataset>> watched_;  // empty: nothing may be skipped
  Splits splits_;
  std::int64_t replaced_before_ = 0;
};

}  // namespace phalanx

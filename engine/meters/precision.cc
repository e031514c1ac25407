// SPDX-License-Identifier: Apache-2.0
// True positives / (true + false positives): the share of positive predictions that are correct. See outcomes.h.
#include "engine/meters/outcomes.h"

namespace phalanx {
namespace {

const bool precision_registered = Meters::global().add<AveragedConfig>(
    "precision", "share of positive predictions that are correct", [](const AveragedConfig& config) {
      return std::make_unique<ShareOfTruePositives>("precision", Outcomes::kFalsePositive, config);
    });

}  // namespace
}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
// True positives / (true positives + false negatives): the share of positives that are found. See outcomes.h.
#include "engine/meters/outcomes.h"

namespace phalanx {
namespace {

const bool recall_registered = Meters::global().add<AveragedConfig>(
    "recall", "share of positives that are found", [](const AveragedConfig& config) {
      return std::make_unique<ShareOfTruePositives>("recall", Outcomes::kFalseNegative, config);
    });

}  // namespace
}  // namespace phalanx

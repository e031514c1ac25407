// SPDX-License-Identifier: Apache-2.0
// The mean loss, and its exponential, which is the perplexity if the loss is a cross entropy over tokens.
#include <cmath>

#include "engine/meters/mean.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

// The product is exact, since a loss is a float and a weight an integer below 2^29.
void measure_loss(const Batch&, const Step::Result& result, Mean& mean) {
  if (result.loss_sums.defined()) {
    mean.add_later(result.loss_sums, 1, result.weight);
  } else {
    mean.add_later(result.loss, result.weight, result.weight);
  }
}

const bool loss_registered =
    Meters::global().add<NoFields>("loss", "mean loss over samples, or over the tokens or pixels in them",
                                   [](const NoFields&) { return std::make_unique<MeanMeter>("loss", measure_loss); });

const bool perplexity_registered =
    Meters::global().add<NoFields>("perplexity", "exponential of the mean loss", [](const NoFields&) {
      return std::make_unique<MeanMeter>("perplexity", measure_loss, [](double loss) { return std::exp(loss); });
    });

}  // namespace
}  // namespace phalanx

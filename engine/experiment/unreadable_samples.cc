// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/unreadable_samples.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cinttypes>

#include "framework/base/console.h"
#include "framework/base/text.h"
#include "framework/comm/texts.h"

namespace phalanx {

void warn_of_skipped_samples(const Unreadable& unreadable) {
  if (unreadable.samples == 0) return;
  const std::string counts = format_text(
      "%" PRId64 " samples could not be read and were skipped; others took their place in %" PRId64 " rows of batches",
      unreadable.samples, unreadable.replaced);
  standard_error().write("Warning: " + counts + ". The first: " + unreadable.first + "\n");
}

UnreadableSamples::UnreadableSamples(const LoaderConfig& config, const Splits& splits)
    : splits_{.train = watched(config, splits.train),
              .validation = watched(config, splits.validation),
              .test = watched(config, splits.test)} {}

std::shared_ptr<const Dataset> UnreadableSamples::watched(const LoaderConfig& config,
                                                          const std::shared_ptr<const Dataset>& split) {
  if (config.on_error == "fail" || !split) return split;
  return watched_.emplace_back(std::make_shared<SkippingDataset>(split, config.max_errors));
}

void UnreadableSamples::start() {
  replaced_before_ = 0;
  for (const auto& split : watched_) replaced_before_ += split->replaced();
}

std::optional<Unreadable> UnreadableSamples::count(Communicator& ranks) const {
  if (watched_.empty()) return std::nullopt;
  Unreadable own{.replaced = -replaced_before_};
  for (const auto& split : watched_) {
    own.samples += split->skipped();
    own.replaced += split->replaced();
    if (own.first.empty()) own.first = split->first_reason();
  }
  const at::Tensor counts = at::tensor({own.samples, own.replaced}, at::kLong);
  ranks.all_reduce(counts, Reduction::kSum).wait();
  const auto* sums = counts.const_data_ptr<std::int64_t>();
  const auto reasons = all_gather_text(own.first, ranks);
  const auto first = std::ranges::find_if(reasons, [](const std::string& reason) { return !reason.empty(); });
  return Unreadable{.samples = sums[0], .replaced = sums[1], .first = first == reasons.end() ? std::string() : *first};
}

}  // namespace phalanx

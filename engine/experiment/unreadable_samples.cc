#include "engine/experiment/unreadable_samples.h"

#include <ATen/ops/tensor.h>

namespace phalanx {

UnreadableSamples::UnreadableSamples(const LoaderConfig& config, const Splits& splits)
    : splits_{.train = watched(config, splits.train),
              .validation = watched(config, splits.validation),
              .test = watched(config, splits.test)} {}

std::shared_ptr<const Dataset> UnreadableSamples::watched(const LoaderConfig& config,
                                                          const std::shared_ptr<const Dataset>& split) {
  if (config.on_error == "fail" || !split) return split;
  return watched_.emplace_back(std::make_shared<TolerantDataset>(split, config.max_errors));
}

void UnreadableSamples::start() {
  replaced_before_ = 0;
  for (const auto& split : watched_) replaced_before_ += split->replaced();
}

std::optional<Unreadable> UnreadableSamples::count(Communicator& ranks) const {
  if (watched_.empty()) return std::nullopt;
  Unreadable own{.replaced = -replaced_before_};
  for (const auto& split : watched_) {
    own.samples += split->left_out();
    own.replaced += split->replaced();
  }
  const at::Tensor counts = at::tensor({own.samples, own.replaced}, at::kLong);
  ranks.all_reduce(counts, Reduction::kSum).wait();
  const auto* sums = counts.const_data_ptr<std::int64_t>();
  return Unreadable{.samples = sums[0], .replaced = sums[1]};
}

}  // namespace phalanx

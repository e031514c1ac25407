// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/gradient_hooks.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace phalanx {

GradientHooks::GradientHooks(const FlatParameters& parameters, std::int64_t backwards, Ready ready,
                             std::shared_ptr<const bool> accumulates)
    : backwards_(backwards),
      ready_(std::move(ready)),
      accumulates_(std::move(accumulates)),
      hooks_(parameters, [this](std::size_t bucket, std::size_t) { arrived(bucket); }) {
  for (const auto& bucket : parameters.buckets()) {
    sizes_.push_back(std::ranges::count_if(bucket.parameters, [](const auto& one) { return one.requires_grad(); }));
  }
  start();
}

void GradientHooks::start() {
  missing_.clear();
  for (const auto size : sizes_) missing_.push_back(size * backwards_);
}

void GradientHooks::arrived(std::size_t bucket) {
  if (accumulates_ && *accumulates_) return;
  if (backwards_ > 0 && missing_[bucket] == 0) {
    throw std::logic_error("a parameter got more gradients than there were backward passes: one more came for bucket " +
                           std::to_string(bucket) + ", which is complete; train with strategy: all_reduce");
  }
  if (--missing_[bucket] == 0) ready_(bucket);
}

}  // namespace phalanx

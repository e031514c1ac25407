// SPDX-License-Identifier: Apache-2.0
#include "datasets/transforms/transform.h"

#include <algorithm>
#include <utility>

#include "framework/base/random.h"

namespace phalanx {

TransformChain::TransformChain(const std::vector<TransformConfig>& transforms) {
  for (const auto& config : transforms) transforms_.push_back(config.transform.make());
}

at::Tensor TransformChain::apply(at::Tensor image, std::uint64_t seed) const {
  for (std::size_t i = 0; i < transforms_.size(); ++i) {
    RandomStream random(mix(seed, i));
    image = transforms_[i]->apply(image, random);
  }
  return image;
}

bool TransformChain::draws() const {
  return std::ranges::any_of(transforms_, [](const auto& transform) { return transform->draws(); });
}

}  // namespace phalanx

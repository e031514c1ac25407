// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/random_stream.h"
#include "datasets/sample_order.h"
#include "framework/base/random.h"

namespace phalanx {

/// An order that is made all at once: its window is the whole epoch.
class WholeOrder : public SampleOrder {
 public:
  explicit WholeOrder(std::int64_t size) : size_(size) {}

  std::int64_t size() const final { return size_; }
  std::int64_t window() const final { return size_; }

 private:
  std::int64_t size_;
};

/// Returns the seed of the order of an epoch.
inline std::uint64_t epoch_seed(std::int64_t seed, std::int64_t epoch) {
  return mix(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(epoch));
}

}  // namespace phalanx

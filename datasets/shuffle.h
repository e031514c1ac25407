// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "datasets/random_stream.h"

namespace phalanx {

/// Shuffles items uniformly (Fisher, Yates; Durstenfeld 1964). The result is the same on every platform.
inline void shuffle(std::span<std::int64_t> items, RandomStream random) {
  for (std::size_t left = items.size(); left > 1; --left) std::swap(items[left - 1], items[random.below(left)]);
}

}  // namespace phalanx

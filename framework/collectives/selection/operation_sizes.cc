// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/operation_sizes.h"

#include <algorithm>
#include <bit>

namespace phalanx {

// The limit between two powers of two is their geometric mean, which no integer equals: its square is 2^(2c + 1).
int OperationSizes::class_of(std::int64_t bytes) {
  if (bytes <= 1) return 0;
  if (bytes >= bytes_of(kClasses - 1)) return kClasses - 1;
  const auto size = static_cast<unsigned __int128>(bytes);
  const int below = std::bit_width(static_cast<std::uint64_t>(bytes)) - 1;
  const bool nearer_to_next = size * size > static_cast<unsigned __int128>(1) << (2 * below + 1);
  return std::min(below + int{nearer_to_next}, kClasses - 1);
}

}  // namespace phalanx

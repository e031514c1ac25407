// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace phalanx {

/// The length of a run.
struct RunLength {
  std::int64_t samples = 0;  // in the training split
  std::int64_t batches = 0;  // in an epoch
  std::int64_t steps = 0;    // of the whole run, unless something stops it before

  bool ends_epoch(std::int64_t cursor) const { return cursor == batches; }
};

}  // namespace phalanx

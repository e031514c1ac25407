// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "datasets/loader.h"

namespace phalanx {

/// Returns the batches of `loader`, of which a separate thread gathers up to `ahead` (> 0) in advance while the caller
/// computes with the current one. An exception during gathering is rethrown by the call of next() that would have
/// returned that batch; the next call tries again. Starting an epoch or destroying the loader waits for the batch that
/// is being gathered.
///
/// At most `ahead` + 1 batches are in memory. The ready ones take at most `max_bytes` together, unless a single batch
/// is larger; 0 means no limit.
///
/// Datasets whose samples are costly to read use `threads` threads for the rows of a batch; 0 means as many as LibTorch
/// uses in the caller's thread.
std::unique_ptr<Loader> make_prefetching(std::unique_ptr<Loader> loader, std::int64_t ahead, int threads = 0,
                                         std::int64_t max_bytes = 0);

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "datasets/loader.h"

namespace phalanx {

/// The same batches, of which a thread of its own gathers up to `ahead` (> 0) while the caller computes with the one it
/// has. What gathering throws is thrown by the call of next() that would have returned that batch; the next call tries
/// again. Holds `ahead` + 1 batches, or fewer: those that are ready take no more than `most_bytes` in all, unless it is
/// one batch alone that does; 0: any. A new epoch, or the end, waits for the batch that is being gathered.
///
/// Where samples are costly, datasets read the rows of a batch in `threads` threads; 0: as many as LibTorch has in the
/// caller's thread.
std::unique_ptr<Loader> make_prefetching(std::unique_ptr<Loader> loader, std::int64_t ahead, int threads = 0,
                                         std::int64_t most_bytes = 0);

}  // namespace phalanx

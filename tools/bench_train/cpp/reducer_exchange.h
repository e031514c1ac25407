// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tools/bench_train/cpp/loop.h"

namespace phalanx::bench_train {

/// Averages gradients with c10d::Reducer over c10d::ProcessGroupGloo, as PyTorch's DistributedDataParallel does with
/// its default settings. With the option "views", gradients are views of the Reducer's buckets (DDP's
/// gradient_as_bucket_view). Connects the ranks. Throws std::runtime_error if this program was built without the
/// headers of Gloo, which the headers of ProcessGroupGloo include.
std::unique_ptr<Exchange> make_reducer_exchange(const LoopJob& job, Network& network);

}  // namespace phalanx::bench_train

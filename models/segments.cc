// SPDX-License-Identifier: Apache-2.0
#include "models/segments.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "framework/parallel/checkpointed.h"

namespace phalanx {

at::Tensor run_in_segments(BlockRange blocks, std::size_t count, const CheckpointedSegments& segments,
                           const std::function<at::Tensor(BlockRange blocks, at::Tensor x)>& run, at::Tensor x) {
  if (segments.count == 0) return run(blocks, std::move(x));
  const auto first = std::clamp<std::size_t>(1, blocks.begin, blocks.end),
             last = std::clamp(count - 1, first, blocks.end);
  const auto between = last - first, parts = std::min(static_cast<std::size_t>(segments.count), between);
  std::shared_ptr<HostCopy> last_copy;
  x = run({blocks.begin, first}, std::move(x));
  for (std::size_t i = 0; i < parts; ++i) {
    const BlockRange segment{first + between * i / parts, first + between * (i + 1) / parts};
    const auto compute = [run, segment](const at::Tensor& start) { return run(segment, start); };
    const bool on_host = segments.on_host && parts > 1 && !x.is_cpu();  // backward begins with the last input
    x = on_host ? checkpointed_on_host(compute, x, last_copy) : checkpointed(compute, x);
  }
  return run({last, blocks.end}, std::move(x));
}

}  // namespace phalanx

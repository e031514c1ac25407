// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/reduce_kernel.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstring>

namespace phalanx::shared_memory {
namespace {

// Small enough that the results of a block stay in the L1 cache until they are written.
constexpr std::size_t kBlockBytes = 2 << 10;

template <class Narrow>
void widen(float* to, const std::byte* from, std::int64_t count) {
  const auto* narrow = reinterpret_cast<const Narrow*>(from);
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(narrow[i]);
}

template <class Narrow>
void reduce_narrow(const Reduction& op, std::span<std::byte* const> targets, std::span<const std::byte* const> sources,
                   std::int64_t count) {
  constexpr std::int64_t kBlock = kBlockBytes / sizeof(float);
  alignas(64) float result[kBlock];
  alignas(64) float next[kBlock];
  alignas(64) Narrow rounded[kBlock];
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t n = std::min(kBlock, count - begin);
    const auto offset = static_cast<std::size_t>(begin) * sizeof(Narrow);
    widen<Narrow>(result, sources[0] + offset, n);
    for (const auto* source : sources.subspan(1)) {
      widen<Narrow>(next, source + offset, n);
      op.combine(c10::kFloat, result, next, n);
    }
    op.finish(c10::kFloat, result, n, static_cast<int>(sources.size()));
    for (std::int64_t i = 0; i < n; ++i) rounded[i] = static_cast<Narrow>(result[i]);
    for (auto* target : targets) std::memcpy(target + offset, rounded, static_cast<std::size_t>(n) * sizeof(Narrow));
  }
}

}  // namespace

void reduce(c10::ScalarType dtype, const Reduction& op, std::span<std::byte* const> targets,
            std::span<const std::byte* const> sources, std::int64_t count) {
  const bool custom = op.kind() == Reduction::Kind::kCustom;
  if (dtype == c10::kHalf && !custom) return reduce_narrow<c10::Half>(op, targets, sources, count);
  if (dtype == c10::kBFloat16 && !custom) return reduce_narrow<c10::BFloat16>(op, targets, sources, count);
  const auto item = c10::elementSize(dtype);
  const auto block = static_cast<std::int64_t>(kBlockBytes / item);
  const auto ranks = static_cast<int>(sources.size());
  alignas(64) std::byte sums[kBlockBytes];
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t n = std::min(block, count - begin);
    const auto offset = static_cast<std::size_t>(begin) * item, bytes = static_cast<std::size_t>(n) * item;
    // Targets may be sources, so only the last step writes to a target, when all other sources of the block have been
    // read.
    std::byte* result = custom ? sums : targets[0] + offset;
    const std::byte* sum = sources[0] + offset;
    for (int i = 1; i < ranks; ++i) {
      std::byte* next = i + 1 < ranks ? sums : result;
      op.combine(dtype, next, sum, sources[i] + offset, n);
      sum = next;
    }
    if (sum != result) std::memcpy(result, sum, bytes);  // only one rank
    op.finish(dtype, result, n, ranks);
    for (auto* target : targets) {
      if (target + offset != result) std::memcpy(target + offset, result, bytes);
    }
  }
}

}  // namespace phalanx::shared_memory

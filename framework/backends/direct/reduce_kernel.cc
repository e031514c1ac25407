#include "framework/backends/direct/reduce_kernel.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstring>

namespace phalanx::direct {
namespace {

// Results of a block stay in the first-level cache until they are written.
constexpr std::size_t kBlockBytes = 8 << 10;

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
  alignas(64) std::byte result[kBlockBytes];
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t n = std::min(block, count - begin);
    const auto offset = static_cast<std::size_t>(begin) * item, bytes = static_cast<std::size_t>(n) * item;
    std::memcpy(result, sources[0] + offset, bytes);
    for (const auto* source : sources.subspan(1)) op.combine(dtype, result, source + offset, n);
    op.finish(dtype, result, n, static_cast<int>(sources.size()));
    for (auto* target : targets) std::memcpy(target + offset, result, bytes);
  }
}

}  // namespace phalanx::direct

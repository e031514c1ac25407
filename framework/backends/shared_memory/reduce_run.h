// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/backends/shared_memory/execution.h"
#include "framework/backends/shared_memory/reduce_kernel.h"

namespace phalanx::shared_memory {

/// Combines `bytes` bytes of all sources and writes the result to `elements`, from byte `begin` on.
inline void reduce_run(const Elements& elements, std::size_t begin, std::span<const std::byte* const> sources,
                       std::size_t bytes, const Reduction& op) {
  std::byte* target[] = {elements.data + begin};
  reduce(elements.dtype, op, target, sources, static_cast<std::int64_t>(bytes / elements.item()));
}

}  // namespace phalanx::shared_memory

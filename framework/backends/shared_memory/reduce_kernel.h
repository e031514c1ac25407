// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/comm/operations/reduction.h"

namespace phalanx::shared_memory {

/// Combines elements [0, count) of all `sources`, in the order of the sources, and writes the result to each of the
/// `targets`. Targets may be sources. float16 and bfloat16 are combined in float32 and rounded once.
void reduce(c10::ScalarType dtype, const Reduction& op, std::span<std::byte* const> targets,
            std::span<const std::byte* const> sources, std::int64_t count);

}  // namespace phalanx::shared_memory

#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/comm/reduction.h"

namespace phalanx::direct {

/// Combines elements [0, count) of all `sources`, in the order of the sources, and writes the result to every one of
/// `targets`. Targets may be sources. Float32, float64 and int64.
void reduce(c10::ScalarType dtype, Reduction op, std::span<std::byte* const> targets,
            std::span<const std::byte* const> sources, std::int64_t count);

}  // namespace phalanx::direct

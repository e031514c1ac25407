#pragma once

#include <cmath>
#include <span>

#include "framework/comm/operations/reduction.h"

// Returns the element that is farthest from zero among those of all ranks, and the first of them in a tie.
inline phalanx::Reduction larger_magnitude() {
  return phalanx::Reduction::custom<float>("larger_magnitude",
                                           [](std::span<float> result, std::span<const float> next) {
                                             for (std::size_t i = 0; i < result.size(); ++i) {
                                               if (std::abs(next[i]) > std::abs(result[i])) result[i] = next[i];
                                             }
                                           });
}

#pragma once

#include <cmath>
#include <span>

#include "framework/comm/operations/reduction.h"

// Of all ranks' elements the one that is farthest from zero; the first of them where two are equally far.
inline phalanx::Reduction larger_magnitude() {
  return phalanx::Reduction::custom<float>("larger_magnitude",
                                           [](std::span<float> result, std::span<const float> next) {
                                             for (std::size_t i = 0; i < result.size(); ++i) {
                                               if (std::abs(next[i]) > std::abs(result[i])) result[i] = next[i];
                                             }
                                           });
}

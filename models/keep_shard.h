// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/partition/placement.h"

namespace phalanx {

/// Replaces the values of a parameter by its local part. The parameter stays the same leaf and keeps its memory format.
inline void keep_shard(const at::Tensor& parameter, const Placement& placement) {
  at::Tensor(parameter).set_data(placement.take(parameter.detach()).contiguous(parameter.suggest_memory_format()));
}

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/operations/work.h"

namespace phalanx {

/// Returns `work` with a copy added: its result arrives in `from`, and wait() copies it to `to`, which may be on
/// another device. `from` is contiguous and has as many elements as `to`.
Work with_result_copied(Work work, at::Tensor from, at::Tensor to);

}  // namespace phalanx

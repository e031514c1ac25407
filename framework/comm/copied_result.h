// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/work.h"

namespace phalanx {

/// `work`, whose result arrives in `from` and is copied to `to`, such as memory of another device, by whoever waits for
/// it first. `from` is contiguous, and both have as many elements.
Work with_result_copied(Work work, at::Tensor from, at::Tensor to);

}  // namespace phalanx

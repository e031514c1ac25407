// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::testing {

/// From now on, LibTorch computes with tensors of pretended devices.
void register_operators();

}  // namespace phalanx::testing

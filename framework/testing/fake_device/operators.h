// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::testing {

/// Registers the operators with which LibTorch computes on fake devices.
void register_operators();

}  // namespace phalanx::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "framework/ps/protocol/message.h"

namespace phalanx::ps {

/// Returns the CRC-32C of a contiguous tensor; 0 if it is undefined.
std::uint32_t checksum_of(const at::Tensor& values);

/// Ends messages about values that were damaged on the way.
inline constexpr const char* kWhatDamages =
    "; the memory or the network interface of one of these two hosts, or the network between them, does not work "
    "correctly";

/// Returns a text that says that the values of a message were damaged on the way, or an empty one if they have the
/// message's checksum, or if it has none. The text begins with the number of bytes.
std::string damage_of(const Header& header, const at::Tensor& values);

}  // namespace phalanx::ps

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Replaces LibTorch's ATen/DeviceGuard.h, which the header of every operator includes and none uses: it brings the
// types of TorchScript, which take half of the time to parse such a header. This one omits the code that needs them.
// Code that calls an operator with an ITensorListRef (at::cat does, at::concat does not) includes ATen/core/IListRef.h
// itself.

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

#include <optional>

namespace at {

inline std::optional<Device> device_of(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Device>(tensor.device()) : std::nullopt;
}

inline std::optional<Device> device_of(const std::optional<Tensor>& tensor) {
  return tensor ? device_of(*tensor) : std::nullopt;
}

}  // namespace at

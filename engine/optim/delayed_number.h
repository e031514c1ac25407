// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <memory>
#include <optional>

namespace phalanx {

/// A number on a device that the host reads some time after it was computed, and therefore without waiting for it. Must
/// be used by one thread at a time.
class DelayedNumber {
 public:
  /// Requests `number`, [] float32 on a device, with the value that it has after the work that is now on the current
  /// stream.
  void request(const at::Tensor& number);

  /// Returns the number that was requested last, or nothing without a request. Waits for the device only if it has not
  /// come that far.
  std::optional<double> read();

 private:
  at::Tensor copy_{};                      // pinned
  std::unique_ptr<c10::Event> arrived_{};  // null without a request
};

}  // namespace phalanx

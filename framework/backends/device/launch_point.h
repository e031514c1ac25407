// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>

namespace phalanx {

/// Returns the current stream of this thread on a device that has streams.
c10::Stream current_stream(const c10::Device& device);

/// The point on the current stream of a tensor's device at which an operation was launched. It is empty for the CPU,
/// which has no streams. For bodies of Communicator::run() that work on such a tensor, since they may run in another
/// thread.
class LaunchPoint {
 public:
  explicit LaunchPoint(const at::Tensor& tensor);

  /// Makes all later work on this thread's current stream wait for that point.
  void precede_current_stream() const;

 private:
  c10::Device device_;
  std::shared_ptr<c10::Event> event_;
};

}  // namespace phalanx

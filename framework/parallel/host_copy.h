// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>

namespace phalanx {

/// An activation of a device that is kept in pinned memory of the host between forward and backward. Copies run on a
/// separate stream, next to the computation, and the host does not wait for them.
///
/// Copies of one forward form a chain. At most two activations of a chain are on the device: when the next copy begins,
/// the current stream waits for the one before, and its activation is freed. So the computation is held up if it is
/// faster than the copies. When backward asks for an activation, the one that it needs next starts to come back. The
/// last one of a chain stays on the device, because backward begins with it.
///
/// Must be used by one thread at a time, and all members on the stream on which the activation was computed.
class HostCopy {
 public:
  /// Begins to copy `tensor` of a device. `before` is the copy that was made before in the same forward; null: none.
  HostCopy(const at::Tensor& tensor, const std::shared_ptr<HostCopy>& before);
  ~HostCopy();
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;

  /// Returns the activation on the device, and starts to bring back the one before.
  at::Tensor restore();

 private:
  c10::Stream current_stream() const;
  at::Tensor take_from_device();
  void begin_restore();

  c10::Stream copies_;     // the stream of the copies
  at::Tensor on_device_;   // undefined once it has been freed
  at::Tensor on_host_;     // pinned
  at::Tensor restored_{};  // comes back from the host, undefined before begin_restore() and after restore()
  c10::Event copied_, arrived_;
  std::weak_ptr<HostCopy> before_;
};

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/host_copy.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <mutex>
#include <utility>

namespace phalanx {
namespace {

// Returns the stream on which all copies of a device run.
c10::Stream stream_of_copies(const c10::Device& device) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, c10::Stream> streams;
  const std::lock_guard lock(mutex);
  const auto found = streams.find(device.index());
  if (found != streams.end()) return found->second;
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
  return streams.emplace(device.index(), stream).first->second;
}

// Makes `later` wait for the work that is on `earlier` now.
void order(const c10::Stream& earlier, const c10::Stream& later) {
  c10::Event event(earlier.device_type());
  event.record(earlier);
  event.block(later);
}

at::Tensor memory_like(const at::Tensor& tensor, const c10::Device& device) {
  return at::empty_like(tensor, tensor.options().device(device).pinned_memory(device.is_cpu()).requires_grad(false));
}

}  // namespace

HostCopy::HostCopy(const at::Tensor& tensor, const std::shared_ptr<HostCopy>& before)
    : copies_(stream_of_copies(tensor.device())),
      on_device_(tensor.detach()),
      on_host_(memory_like(on_device_, c10::kCPU)),
      copied_(tensor.device().type()),
      arrived_(tensor.device().type()),
      before_(before) {
  if (before) before->take_from_device();
  const at::NoGradGuard no_grad;
  order(current_stream(), copies_);
  const c10::StreamGuard guard(copies_);
  on_host_.copy_(on_device_, /*non_blocking=*/true);
  copied_.record(copies_);
}

// The stream of the copies may still use memory that nothing has waited for: such as when a step ends with an error.
HostCopy::~HostCopy() {
  if (on_device_.defined()) on_device_.record_stream(copies_);
  if (restored_.defined()) restored_.record_stream(copies_);
}

c10::Stream HostCopy::current_stream() const {
  return c10::impl::VirtualGuardImpl(copies_.device_type()).getStream(copies_.device());
}

// Later work on the current stream may overwrite the memory once the caller drops the tensor.
at::Tensor HostCopy::take_from_device() {
  if (on_device_.defined()) copied_.block(current_stream());
  return std::exchange(on_device_, at::Tensor());
}

// The memory belongs to the current stream, so that the allocator can use it again without waiting for an event.
void HostCopy::begin_restore() {
  if (on_device_.defined() || restored_.defined()) return;
  const at::NoGradGuard no_grad;
  restored_ = memory_like(on_host_, copies_.device());
  order(current_stream(), copies_);
  const c10::StreamGuard guard(copies_);
  restored_.copy_(on_host_, /*non_blocking=*/true);
  arrived_.record(copies_);
}

at::Tensor HostCopy::restore() {
  at::Tensor tensor = take_from_device();
  if (!tensor.defined()) {
    begin_restore();
    arrived_.block(current_stream());
    tensor = std::exchange(restored_, at::Tensor());
  }
  if (const auto before = before_.lock()) before->begin_restore();
  return tensor;
}

}  // namespace phalanx

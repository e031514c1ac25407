// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/device/device_communicator.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>
#include <optional>
#include <utility>

#include "framework/backends/device/launch_point.h"
#include "framework/backends/device/staging.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

const at::Tensor& tensor_of(const Operation& operation) {
  return operation.output.defined() ? operation.output : operation.input;
}

// Returns the current stream of this thread, or nothing if there is no such device: a CUDA-aware MPI may run without
// one.
std::optional<c10::Stream> stream_in_use(c10::DeviceType type) {
  if (type == c10::kCPU || !c10::impl::hasDeviceGuardImpl(type)) return {};
  const c10::impl::VirtualGuardImpl devices(type);
  if (devices.deviceCount() == 0) return {};
  return devices.getStream(devices.getDevice());
}

bool is_message(const Operation& operation) { return operation.call.op == Op::kSend || operation.call.op == Op::kRecv; }

// An operation that has already run. wait() throws its error.
class Finished final : public Work::State {
 public:
  explicit Finished(std::exception_ptr error) : error_(std::move(error)) {}
  void wait() override {
    if (auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
  }
  bool done() const override { return true; }

 private:
  std::exception_ptr error_;
};

}  // namespace

// A single rank copies on its stream.
bool DeviceCommunicator::in_graphs(c10::DeviceType device) const {
  return device == device_ && device != c10::kCPU && (size() == 1 || paths_.native.group != nullptr);
}

Work DeviceCommunicator::launch(Operation operation) {
  const at::Tensor& tensor = tensor_of(operation);
  if (!tensor.defined() || tensor.device().type() != device_) return inner()->launch(std::move(operation));
  if (size() == 1 && !is_message(operation)) return launch_alone(std::move(operation));
  if (messages_ && is_message(operation) && operation.call.peer != rank()) {
    return messages_->launch(std::move(operation));
  }
  const Native& native = paths_.native;
  if (native.group && native.supports(operation)) return native.group->launch(std::move(operation));
  return launch_blocking(std::move(operation));
}

// With one rank, every collective copies its input to its output, if it has both.
Work DeviceCommunicator::launch_alone(Operation operation) {
  const at::NoGradGuard no_grad;
  if (operation.input.defined() && operation.output.defined() && operation.output.numel() > 0) {
    operation.output.view({-1}).copy_(operation.input.view({-1}), /*non_blocking=*/true);
  }
  return inner()->run(operation.call, [] {});  // for its place in the order and in the record
}

Work DeviceCommunicator::launch_blocking(Operation operation) {
  const Call call = operation.call;
  if (call.op == Op::kSend) return send_staged(*inner(), std::move(operation));
  if (call.op == Op::kRecv) return recv_staged(*inner(), std::move(operation));
  const LaunchPoint point(tensor_of(operation));
  // Runs on a stream of the thread that runs the body, so that work launched later on the caller's stream can go on.
  return run_in_turn(call, [host = inner(), operation = std::move(operation), point, paths = paths_] {
    const c10::DeviceGuard here(tensor_of(operation).device());
    point.precede_current_stream();
    if (paths.peers && PeerGroup::supports(operation) && paths.peers->open_windows(*host)) {
      return paths.peers->run(*host, operation);
    }
    if (paths.direct && paths.direct(operation)) return run_direct(*host, operation);
    if (host->takes(tensor_of(operation).device().type())) return host->launch(operation).wait();
    run_staged(*host, operation, paths.chunk_bytes);
  });
}

Work DeviceCommunicator::run(const Call& call, std::function<void()> body) {
  return run_in_turn(call, [stream = stream_in_use(device_), body = std::move(body)] {
    const c10::OptionalStreamGuard here(stream);
    body();
  });
}

Work DeviceCommunicator::run_in_turn(const Call& call, std::function<void()> body) {
  if (!paths_.native.group) return inner()->run(call, std::move(body));
  std::exception_ptr error;
  try {
    inner()->run(call, std::move(body)).wait();
  } catch (...) {
    error = std::current_exception();
  }
  return Work(std::make_shared<Finished>(std::move(error)));
}

DeviceCommunicator::Paths DeviceCommunicator::for_child() const {
  return {.native = {nullptr, paths_.native.supports, paths_.native.messages},
          .peers = paths_.peers ? paths_.peers->for_child() : nullptr,
          .direct = paths_.direct,
          .chunk_bytes = paths_.chunk_bytes};
}

CommunicatorPtr DeviceCommunicator::split(int color, int key) {
  auto host = inner()->split(color, key);
  Paths paths = for_child();
  if (paths_.native.group) paths.native.group = paths_.native.group->split(color, key);
  return host ? std::make_shared<DeviceCommunicator>(std::move(host), device_, std::move(paths)) : nullptr;
}

std::string DeviceCommunicator::why_no_shrink() const {
  return paths_.native.group ? cannot_shrink("nccl") : Decorator::why_no_shrink();
}

bool DeviceCommunicator::shares_memory() const { return device_ == c10::kCPU ? inner()->shares_memory() : size() == 1; }

at::Tensor DeviceCommunicator::do_allocate(const Allocation& allocation) {
  if (allocation.shared() && !shares_memory()) throw ConfigError("these ranks cannot share device memory");
  if (allocation.options.device().type() != device_ || device_ == c10::kCPU) return inner()->do_allocate(allocation);
  if (paths_.native.group) return paths_.native.group->do_allocate(allocation);
  if (!paths_.peers || size() == 1) return at::zeros(allocation.sizes, allocation.options);
  at::Tensor memory;
  run_in_turn(allocation.call, [&, host = inner()] {
    if (paths_.peers->open_windows(*host)) memory = paths_.peers->allocate(*host, allocation);
  }).wait();
  return memory.defined() ? memory : at::zeros(allocation.sizes, allocation.options);
}

CommunicatorPtr DeviceCommunicator::wrap(CommunicatorPtr child) {
  return std::make_shared<DeviceCommunicator>(std::move(child), device_, for_child());
}

}  // namespace phalanx

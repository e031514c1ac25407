#include "framework/backends/device/communicator.h"

#include <ATen/ops/zeros.h>

#include <exception>
#include <utility>

#include "framework/backends/device/staging.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

const at::Tensor& tensor_of(const Operation& operation) {
  return operation.output.defined() ? operation.output : operation.input;
}

// What has run already; its error is thrown where it is waited for.
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

DeviceCommunicator::DeviceCommunicator(CommunicatorPtr host, c10::DeviceType device, Native native,
                                       std::int64_t chunk_bytes)
    : Decorator(std::move(host)), device_(device), native_(std::move(native)), chunk_bytes_(chunk_bytes) {}

Work DeviceCommunicator::launch(Operation operation) {
  const at::Tensor& tensor = tensor_of(operation);
  if (!tensor.defined() || tensor.device().type() != device_) return inner()->launch(std::move(operation));
  if (native_.group && native_.can(operation)) return native_.group->launch(std::move(operation));
  return launch_staged(std::move(operation));
}

Work DeviceCommunicator::launch_staged(Operation operation) {
  const Call call = operation.call;
  if (call.op == Op::kSend) return send_staged(*inner(), std::move(operation));
  if (call.op == Op::kRecv) return recv_staged(*inner(), std::move(operation));
  const LaunchPoint point(tensor_of(operation));
  return run(call, [host = inner(), operation = std::move(operation), point, chunk = chunk_bytes_] {
    point.precede_current_stream();
    do_staged(*host, operation, chunk);
  });
}

Work DeviceCommunicator::run(const Call& call, std::function<void()> body) {
  if (!native_.group) return inner()->run(call, std::move(body));
  std::exception_ptr error;
  try {
    inner()->run(call, std::move(body)).wait();
  } catch (...) {
    error = std::current_exception();
  }
  return Work(std::make_shared<Finished>(std::move(error)));
}

CommunicatorPtr DeviceCommunicator::split(int color, int key) {
  auto host = inner()->split(color, key);
  Native native{nullptr, native_.can};
  if (native_.group) native.group = native_.group->split(color, key);
  if (!host) return nullptr;
  return std::make_shared<DeviceCommunicator>(std::move(host), device_, std::move(native), chunk_bytes_);
}

CommunicatorPtr DeviceCommunicator::shrink() {
  if (native_.group) refuse_shrink("nccl");
  return Decorator::shrink();
}

at::Tensor DeviceCommunicator::do_allocate(const Allocation& allocation) {
  if (allocation.options.device().type() != device_ || device_ == c10::kCPU) return inner()->do_allocate(allocation);
  if (allocation.shared() && size() > 1) {
    throw ConfigError("ranks have no memory of devices in common; ask for the CPU's");
  }
  return native_.group ? native_.group->do_allocate(allocation) : at::zeros(allocation.sizes, allocation.options);
}

CommunicatorPtr DeviceCommunicator::wrap(CommunicatorPtr child) {
  return std::make_shared<DeviceCommunicator>(std::move(child), device_, Native{}, chunk_bytes_);
}

}  // namespace phalanx

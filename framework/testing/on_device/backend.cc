// SPDX-License-Identifier: Apache-2.0
// The backends `on_device` and `on_cuda`, for tests: each operation on CPU tensors is performed on copies of them on a
// device, and the results are copied back when it is waited for. In this way, every communicator suite also tests
// groups of devices. The device of `on_device` is the one in PHALANX_TEST_DEVICE, such as cuda, or else the fake one;
// that of `on_cuda` is cuda. Ranks are threads, since they need no backward and it takes a process a long time to
// acquire a device.
#include "framework/comm/backend.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>
#include <string>
#include <utility>

#include "framework/base/config/no_fields.h"
#include "framework/base/environment.h"
#include "framework/comm/decorator.h"
#include "framework/comm/device_kind.h"
#include "framework/comm/operations/copied_result.h"

namespace phalanx::testing {
namespace {

class OnDevice final : public Decorator {
 public:
  OnDevice(CommunicatorPtr inner, c10::Device device) : Decorator(std::move(inner)), device_(device) {}

  bool takes(c10::DeviceType type) const override { return type == c10::kCPU; }

  // Copies in the operation's turn, when earlier operations have updated the CPU tensors.
  Work launch(Operation operation) override {
    if (!operation.output.defined() && !operation.input.defined()) return inner()->launch(std::move(operation));
    if (operation.call.op == Op::kSend || operation.call.op == Op::kRecv) return launch_message(std::move(operation));
    const Call call = operation.call;
    return run(call, [inner = inner(), device = device_, operation = std::move(operation)] {
      const at::Tensor output = operation.output;
      Operation there = moved(operation, device);
      const at::Tensor result = there.output;
      inner->launch(std::move(there)).wait();
      if (output.defined() && output.numel() > 0) at::Tensor(output).copy_(result);
    });
  }

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override { return std::make_shared<OnDevice>(std::move(child), device_); }

 private:
  static Operation moved(Operation operation, const c10::Device& device) {
    c10::impl::VirtualGuardImpl(device.type()).setDevice(device);  // may be called in any thread
    for (auto* tensor : {&operation.output, &operation.input}) {
      if (tensor->defined()) *tensor = tensor->to(device);
    }
    return operation;
  }

  Work launch_message(Operation operation) {
    const bool sends = operation.call.op == Op::kSend;
    const at::Tensor output = operation.output;
    Operation there = moved(std::move(operation), device_);
    const at::Tensor result = there.output;
    Work work = inner()->launch(std::move(there));
    return sends ? std::move(work) : with_result_copied(std::move(work), result, output);
  }

  c10::Device device_;
};

CommunicatorPtr connect_on(const std::string& device, const ConnectOptions& options) {
  const auto kind = DeviceKinds::Choice(device).make();
  const auto own = static_cast<c10::DeviceIndex>(options.rank_info.local_rank % kind->count());
  const c10::Device place(kind->type(), own);
  c10::impl::VirtualGuardImpl(kind->type()).setDevice(place);
  auto host = Backends::Choice("inproc").make(options);
  return std::make_shared<OnDevice>(kind->connect(std::move(host), place, options.timeout), place);
}

const BackendTraits kTraits{.threads = true, .shared = BackendTraits::Memory::kAll};

const bool on_device_registered = Backends::global().add<NoFields>(
    "on_device", "for tests: copies tensors to a device", kTraits, [](const NoFields&, const ConnectOptions& options) {
      return connect_on(environment("PHALANX_TEST_DEVICE").value_or("fake"), options);
    });

const bool on_cuda_registered = Backends::global().add<NoFields>(
    "on_cuda", "for tests: copies tensors to a CUDA device", kTraits,
    [](const NoFields&, const ConnectOptions& options) { return connect_on("cuda", options); });

}  // namespace
}  // namespace phalanx::testing

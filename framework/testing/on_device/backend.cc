// SPDX-License-Identifier: Apache-2.0
// The backend `on_device` of tests: whatever a test does with tensors of the CPU is done with copies of them on a
// device, and copied back when it is waited for. So every suite of communicators is one of groups of devices too. The
// device is that of PHALANX_TEST_DEVICE, such as cuda, or else the pretended one. Ranks are threads: they need no
// backward, and a process takes long to get a device.
#include "framework/comm/backend.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <memory>
#include <string>
#include <utility>

#include "framework/base/config/no_fields.h"
#include "framework/base/environment.h"
#include "framework/comm/copied_result.h"
#include "framework/comm/decorator.h"
#include "framework/comm/device_kind.h"

namespace phalanx::testing {
namespace {

class OnDevice final : public Decorator {
 public:
  OnDevice(CommunicatorPtr inner, c10::Device device) : Decorator(std::move(inner)), device_(device) {}

  bool takes(c10::DeviceType type) const override { return type == c10::kCPU; }

  // In its turn among all others, as the CPU's memory is then.
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
    c10::impl::VirtualGuardImpl(device.type()).setDevice(device);  // whichever thread this is
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

CommunicatorPtr connect(const NoFields&, const ConnectOptions& options) {
  const auto kind = DeviceKinds::Choice(environment("PHALANX_TEST_DEVICE").value_or("pretend")).make();
  const auto own = static_cast<c10::DeviceIndex>(options.rank_info.local_rank % kind->count());
  const c10::Device place(kind->type(), own);
  c10::impl::VirtualGuardImpl(kind->type()).setDevice(place);
  auto host = Backends::Choice("inproc").make(options);
  return std::make_shared<OnDevice>(kind->connect(std::move(host), place, options.timeout), place);
}

const bool backend_registered =
    Backends::global().add<NoFields>("on_device", "for tests: with copies of tensors on a device", &connect);

}  // namespace
}  // namespace phalanx::testing

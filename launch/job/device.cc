// SPDX-License-Identifier: Apache-2.0
#include "launch/job/device.h"

#include <ATen/Context.h>
#include <ATen/ops/full.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/backends/device/device_communicator.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/comm/device_kind.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

std::shared_ptr<const DeviceKind> kind_named(const std::string& name) { return DeviceKinds::Choice(name).make(); }

// Returns the number of devices of this process, or 0 if they cannot be used.
int usable_devices(const DeviceKind& kind) {
  if (const std::string missing = kind.missing(); !missing.empty()) {
    log_info() << "computes on the CPU: " << missing;
    return 0;
  }
  try {
    return kind.count();
  } catch (const ConfigError& error) {
    log_info() << error.what();
    return 0;
  }
}

bool on_all_ranks(bool here, Communicator& world) {
  if (world.size() == 1) return here;
  const at::Tensor least = at::full({1}, here ? 1 : 0, at::kLong);
  world.all_reduce(least, Reduction::kMin).wait();
  return least.item<std::int64_t>() == 1;
}

// Returns which setting of the config no device supports, or an empty string.
std::string for_cpus_alone(const ExperimentConfig& config, Communicator& world) {
  if (config.train.data_parallel > 1) return "train.data_parallel uses threads of the CPU";
  const auto& traits = config.strategy.traits();
  const bool shared = traits.shared_memory || traits.shared_memory_in_hosts;
  if (shared && world.size() > 1) {
    return "strategy " + config.strategy.selected() + " shares memory between ranks, on the CPU only";
  }
  if (!config.framework.record.empty() && !config.train.deterministic) {
    return "framework.record needs train.deterministic: true on devices, so that a replay computes the same bits";
  }
  if (config.faults.shrinks()) return "faults.on_lost_rank: " + config.faults.on_lost_rank + " works on the CPU only";
  if (config.framework.check_collectives) return "framework.check_collectives compares operations on the CPU only";
  return "";
}

// Returns null for the CPU.
std::shared_ptr<const DeviceKind> choose_kind(const ExperimentConfig& config, Communicator& world) {
  if (config.device == "cpu") return nullptr;
  const std::string why = for_cpus_alone(config, world);
  if (config.device != "auto") {
    if (!why.empty()) throw ConfigError("device: " + config.device + ": " + why + "; leave it out, or use device: cpu");
    return kind_named(config.device);
  }
  if (!why.empty()) {
    log_info() << "computes on the CPU: " << why;
    return nullptr;
  }
  auto cuda = kind_named("cuda");
  const bool here = usable_devices(*cuda) > 0;
  if (on_all_ranks(here, world)) return cuda;
  if (here) log_info() << "computes on the CPU: another rank has no device";
  return nullptr;
}

// Returns the rank's number among the ranks of its host.
int number_on_host(Communicator& world) {
  const MeasuredInputs measured;
  const auto hosts = all_gather_text(host_key(), world);
  return static_cast<int>(std::count(hosts.begin(), hosts.begin() + world.rank(), hosts[world.rank()]));
}

// Returns why ranks cannot share devices, or an empty string if they can.
std::string shared_by_threads(Communicator& world, const c10::Device& device, int devices) {
  const MeasuredInputs measured;
  const auto all = all_gather_text(host_key() + "/" + std::to_string(::getpid()) + "/" + device.str(), world);
  for (std::size_t second = 0; second < all.size(); ++second) {
    const auto first = static_cast<std::size_t>(std::ranges::find(all, all[second]) - all.begin());
    if (first == second) continue;
    return "ranks " + std::to_string(first) + " and " + std::to_string(second) +
           " are threads of one process and would share device " + device.str() + " of " + std::to_string(devices) +
           "; use backend: shm, whose ranks are processes";
  }
  return "";
}

// Applies to the whole process. Unless deterministic, cuDNN measures which of its kernels is the fastest, and may
// choose a different one in each run. LibTorch's default is TF32 for convolutions and recurrent layers.
void choose_kernels(const TrainConfig& config) {
  const bool deterministic = config.deterministic, tf32 = config.precision == "tf32";
  at::Context& context = at::globalContext();
  context.setAllowTF32CuDNN(tf32);
  context.setAllowTF32CuBLAS(tf32);
  if (deterministic) ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);  // before cuBLAS is used
  context.setDeterministicAlgorithms(deterministic, /*warn_only=*/false);
  context.setDeterministicCuDNN(deterministic);
  context.setBenchmarkCuDNN(!deterministic);
}

}  // namespace

DeviceAssignment choose_devices(const ExperimentConfig& config, CommunicatorPtr world) {
  const auto kind = choose_kind(config, *world);
  if (kind == nullptr) {
    if (config.train.precision == "tf32") log_info() << "train.precision: tf32 is fp32 on the CPU";
    return {std::move(world)};
  }
  const int devices = kind->count();
  const c10::Device device(kind->type(), static_cast<c10::DeviceIndex>(number_on_host(*world) % devices));
  if (const std::string why = shared_by_threads(*world, device, devices); !why.empty()) {
    if (config.device != "auto") throw ConfigError("device: " + why);
    log_info() << "computes on the CPU: " << why;
    return {std::move(world)};
  }
  const c10::impl::VirtualGuardImpl guard(kind->type());
  guard.setDevice(device);
  guard.exchangeStream(guard.getStreamFromGlobalPool(device));
  choose_kernels(config.train);
  log_info() << "computes on " << device.str() << " of " << devices;
  // A recording has what arrives in the memory of the host.
  if (!config.framework.record.empty()) {
    return {std::make_shared<DeviceCommunicator>(std::move(world), kind->type()), device};
  }
  // A single rank may have another backend than the config's, which does not take tensors of devices.
  if (!connects_devices(config.backend, kind->type()) || !world->takes(kind->type())) {
    world = kind->connect(world, device, Seconds(config.framework.timeout));
  }
  return {std::move(world), device};
}

}  // namespace phalanx

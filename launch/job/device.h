// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include "engine/config/experiment_config.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The device of a rank, and the group of the ranks that compute together, which accepts tensors of such devices.
struct DeviceAssignment {
  CommunicatorPtr world;
  c10::Device device{c10::kCPU};
};

/// Chooses a device for each rank of `world` according to `device` in the config. The ranks of a host take its devices
/// in turn. With "auto", all ranks compute on CUDA devices if every rank has one, and on the CPU otherwise. "auto" also
/// chooses the CPU in two other cases: if ranks that are threads of one process would share a device, because their
/// backward passes would wait for each other; and if the config needs something that no device supports (shared memory,
/// train.data_parallel). With another name, these cases throw ConfigError, and so does a missing device. Collective.
///
/// Makes the device the current one of the calling thread, and sets a new stream as its current stream, since steps
/// cannot be recorded on the default stream (CapturedGraphStep).
DeviceAssignment choose_devices(const ExperimentConfig& config, CommunicatorPtr world);

}  // namespace phalanx

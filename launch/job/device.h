// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include "engine/experiment/config.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Where a rank computes, and the group of those that do so together, which takes tensors of such devices.
struct Placed {
  CommunicatorPtr world;
  c10::Device device{c10::kCPU};
};

/// Gives each rank of `world` a device, as `device` of the config says: ranks of one host take its devices in turn.
/// With "auto" all of them compute on CUDA devices where every rank has one, otherwise on the CPU. Collective. Ranks
/// that are threads of one process cannot have one device, where their backwards wait for each other: with "auto" they
/// compute on the CPU. What no device has (memory in common, train.data_parallel) leaves "auto" on the CPU, too.
/// Throws ConfigError for these with another name, and where there is no such device.
///
/// The calling thread's current device is that one from then on, and its current stream one of the thread's own: on the
/// default one, no step could be recorded (CapturedStep).
Placed choose_devices(const ExperimentConfig& config, CommunicatorPtr world);

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kept_values.h"
#include "framework/base/storage/safetensors.h"
#include "framework/comm/communicator.h"
#include "models/model.h"

namespace phalanx {

/// Returns copies of the model's buffers, averaged over the ranks of a group if they are floating-point: the batch norm
/// statistics of each rank's share become statistics of all samples. Collective.
NamedTensors shared_buffers(const Model& model, Communicator& group);

/// Gives the model's buffers the values of shared_buffers() during the lifetime of this object, and the rank's own
/// values afterwards. Construction is collective.
class SharedStatistics {
 public:
  SharedStatistics(const Model& model, Communicator& group);

 private:
  RestoreTensorsGuard own_;
};

}  // namespace phalanx

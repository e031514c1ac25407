// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kept_values.h"
#include "framework/base/storage/safetensors.h"
#include "framework/comm/communicator.h"
#include "models/model.h"

namespace phalanx {

/// Copies of the model's buffers, of floating-point ones the means over the ranks of a group: what batch norm has seen
/// of each rank's share becomes what it has seen of all. Collective.
NamedTensors shared_buffers(const Model& model, Communicator& group);

/// As long as it lives, the model's buffers are the shared ones. Afterwards they are the rank's own again. Making one
/// is collective.
class SharedStatistics {
 public:
  SharedStatistics(const Model& model, Communicator& group);

 private:
  KeptValues own_;
};

}  // namespace phalanx

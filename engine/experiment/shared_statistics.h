#pragma once

#include <utility>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "framework/comm/communicator.h"
#include "models/models.h"

namespace phalanx {

/// Copies of the model's buffers, of floating-point ones the means over the ranks of a group: what batch norm has seen of
/// each rank's share becomes what it has seen of all. Collective.
NamedTensors shared_buffers(const Model& model, Communicator& group);

/// As long as it lives, the model's buffers are the shared ones. Afterwards they are the rank's own again. Making one is
/// collective.
class SharedStatistics {
 public:
  SharedStatistics(const Model& model, Communicator& group);
  ~SharedStatistics();
  SharedStatistics(const SharedStatistics&) = delete;
  SharedStatistics& operator=(const SharedStatistics&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> own_;  // a buffer, and what it held
};

}  // namespace phalanx

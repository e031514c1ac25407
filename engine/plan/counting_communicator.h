// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "engine/plan/operation_log.h"
#include "framework/comm/decorator.h"
#include "framework/comm/mesh/mesh.h"

namespace phalanx {

/// Counts, by axes of the group, the operations that a run launches on a world and on groups split from it. A split
/// makes an all_gather of the ranks' numbers, which is not counted.
class CountingCommunicator final : public Decorator {
 public:
  /// `ranks` are numbers in the world, in the order of `inner`.
  CountingCommunicator(CommunicatorPtr inner, const MeshShape& shape, std::vector<int> ranks,
                       std::shared_ptr<OperationLog> log);

  Work launch(Operation operation) override;
  Work run(const Call& call, std::function<void()> body) override;

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override;

 private:
  MeshShape shape_;
  std::vector<int> ranks_;
  AxisBits axes_;
  std::shared_ptr<OperationLog> log_;
};

/// Wraps `world` in a CountingCommunicator. Not collective.
CommunicatorPtr count_operations(CommunicatorPtr world, const MeshShape& shape, std::shared_ptr<OperationLog> log);

}  // namespace phalanx

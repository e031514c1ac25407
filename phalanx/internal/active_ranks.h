// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Tells all ranks in each step which of them have data for it. Bytes on the wire: an all-reduce of 8 bytes per rank.
class ActiveRanks {
 public:
  explicit ActiveRanks(CommunicatorPtr group);

  /// Launches the exchange of a step, before the step launches any other operation. `active`: this rank has data.
  void launch(bool active);

  /// Completes it.
  void wait() { work_.wait(); }

  /// Return the number of ranks that have data in this step, and the lowest of them. Valid after wait().
  int count() const;
  int lowest() const;

 private:
  CommunicatorPtr group_;
  at::Tensor flags_;  // [P] int64
  Work work_;
};

}  // namespace phalanx

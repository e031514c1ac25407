// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/base/storage/disk.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The progress of a rank with its share of a checkpoint.
struct WriteStatus {
  enum Stage : std::int64_t { kWriting, kWritten, kCommitted, kFailed };

  Stage stage = kWriting;
  FileRecord weights{}, state{};  // without names; from kWritten on
  bool troubled = false;          // the disk has refused the last attempt, and the rank tries again
  std::int64_t impatient_in = 0;  // of rank 0: number of the wait that all ranks have to end
};

/// The statuses of all ranks, which they exchange in a small all-gather. It is read one step after it was launched,
/// when all ranks have long contributed, so that no rank waits for another. Calls are collective, in the order
/// launch(), finish(), launch(), ...
class WriteStatuses {
 public:
  explicit WriteStatuses(CommunicatorPtr world);

  void launch(const WriteStatus& mine);
  void finish();

  /// Returns the status that a rank had at the last launch(). Before the first launch(), all of them are writing.
  WriteStatus of(int rank) const;

  /// Returns to the beginning.
  void clear();

 private:
  CommunicatorPtr world_;
  at::Tensor mine_, all_;  // int64
  Work exchange_;
};

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <future>
#include <optional>
#include <string>

#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/run_state.h"
#include "framework/base/file_identity.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// A copy of one rank's share of a checkpoint, in the format of the two files that it is written to.
///
///   weights  whole parameters by name, and on rank 0 also the model's buffers; this is the file that Python loads. If
///            ranks have only parts of the values, these parts (stored_name(), with the shape)
///   state    optimizer/KIND/PARAMETER        optimizer state for a parameter, in its shape
///            optimizer/KIND/PARAMETER[A:B]   the same for its elements from A to B
///            part/PART/TENSOR                this rank's own state
///            replica/...                     this rank's parameters and optimizer state, if replicas differ
///
/// If this rank has only a part of a parameter, PARAMETER is its name followed by the part (to_text(Placement)), also
/// in the file of weights.
struct Snapshot {
  std::string weights, state;
};

/// Copies this rank's share according to `plan` into `snapshot`, whose memory is reused.
void take_snapshot(const RunState& state, const WritePlan& plan, bool replicas_equal, Snapshot& snapshot);

/// Writes checkpoints while training continues: all ranks together, one checkpoint at a time.
///
/// save() copies this rank's share and returns, and a thread writes the copy to disk. After every step, ranks exchange
/// their progress in a small all-gather, whose result is read one step later, when all ranks have long contributed.
/// When all have written their files, rank 0's thread completes the manifest, renames the folder, and removes
/// checkpoints that are not to be kept. The files of all ranks must be in the same file system.
///
/// If the folder that contains `folder` was removed or renamed since the start, nothing is written, because writing
/// would create it again. Errors are logged, and the checkpoint is abandoned on all ranks, without leaving files. Older
/// checkpoints are kept, and the next one is attempted as usual.
///
/// All calls are collective and must come from one thread.
class Checkpointer {
 public:
  /// `state` must outlive this object.
  Checkpointer(CheckpointFolder folder, Retention retention, CommunicatorPtr world, const RunState& state);
  ~Checkpointer();  // waits for its threads; uncommitted files stay for the next run to remove
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// Begins a checkpoint. Blocks until the previous one is complete. `manifest` must be the same on all ranks; this
  /// function sets its `ranks` and `files`.
  void save(Manifest manifest, bool replicas_equal);

  /// Must be called once per step. Does nothing, and does not communicate, while no checkpoint is being written.
  void advance();

  /// Blocks until the current checkpoint is complete or abandoned.
  void settle();

  /// Returns the reason why the last settled checkpoint was abandoned: the reason of the first rank that had one, the
  /// same on all ranks. Empty if the checkpoint was written, or if there was none.
  const std::string& failure() const { return failure_; }
  std::int64_t written() const { return written_; }  // since the start
  std::int64_t failed() const { return failed_; }

 private:
  enum Status : std::int64_t { kWriting, kWritten, kCommitted, kFailed };
  struct Files {
    FileRecord weights, state;
  };

  void look();             // checks the progress of this rank's own threads
  void exchange_status();  // launches the all-gather
  bool conclude();         // reads it; returns true if the checkpoint is done
  void begin_commit();
  void finish(bool complete);
  std::string first_reason() const;
  std::int64_t status_of(int rank) const;

  CheckpointFolder folder_;
  Retention retention_;
  std::optional<FileIdentity> run_folder_;  // at the start; empty if it did not exist
  CommunicatorPtr world_;
  const RunState& state_;
  WritePlan plan_;

  bool busy_ = false;
  Manifest manifest_;
  Snapshot snapshot_;
  std::future<Files> writing_;
  std::future<void> commit_;
  at::Tensor mine_;  // [5] int64: status, bytes and checksum of both files
  at::Tensor all_;   // [ranks * 5]
  Work exchange_;
  std::string failure_, reason_;
  std::int64_t written_ = 0, failed_ = 0;
};

}  // namespace phalanx

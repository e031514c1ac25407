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

/// One rank's share of a checkpoint, copied, as the two files that it becomes.
///
///   weights  whole parameters by their names; on rank 0 the model's buffers too: what Python loads. Where ranks have
///            parts of the values alone, these (stored_name(), with the shape)
///   state    optimizer/KIND/PARAMETER        what the optimizer remembers of it, in its shape
///            optimizer/KIND/PARAMETER[A:B]   the same of its elements from A to B
///            part/PART/TENSOR                the rank's own
///            replica/...                     parameters and optimizer of this rank, where replicas differ
///
/// Of a parameter of which this rank has a part, PARAMETER is its name with the part behind it (to_text(Placement)),
/// also in the file of weights.
struct Snapshot {
  std::string weights, state;
};

/// Copies what `plan` gives to this rank into `snapshot`, whose memory is used again.
void take_snapshot(const RunState& state, const WritePlan& plan, bool replicas_equal, Snapshot& snapshot);

/// Writes checkpoints while training goes on; all ranks together, one checkpoint at a time.
///
/// save() copies this rank's share and returns; a thread writes it to disk. After every step the ranks tell each other
/// how far they are, by a small all-gather that is read a step later, when all have long cast it. When all have
/// written, rank 0's thread completes the manifest, renames the folder, and removes what is not kept. The ranks' files
/// must lie in one file system.
///
/// If the folder that contains `folder` was removed or renamed since the start, nothing is written: it would be created
/// again. What goes wrong is logged and the checkpoint given up on all ranks; nothing of it is left. Older ones stay,
/// and the next one is tried as if nothing had been.
///
/// All calls are collective and come from one thread.
class Checkpointer {
 public:
  /// `state` must outlive this.
  Checkpointer(CheckpointFolder folder, Retention retention, CommunicatorPtr world, const RunState& state);
  ~Checkpointer();  // waits for its threads; what is not committed by then stays half-made, to be removed by the next
                    // run
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// Begins a checkpoint; blocks while the one before is not complete. Of the manifest, `ranks` and `files` are filled
  /// in here; it is the same on all ranks.
  void save(Manifest manifest, bool replicas_equal);

  /// Once a step. Does nothing, and says nothing to the other ranks, while no checkpoint is being made.
  void advance();

  /// Blocks until the checkpoint that was begun is complete or given up.
  void settle();

  /// Why the last checkpoint that was settled was given up: the reason of the first rank that had one, the same on all
  /// ranks. Empty: the checkpoint is there, or there was none.
  const std::string& failure() const { return failure_; }
  std::int64_t written() const { return written_; }  // since the start
  std::int64_t failed() const { return failed_; }

 private:
  enum Status : std::int64_t { kWriting, kWritten, kCommitted, kFailed };
  struct Files {
    FileRecord weights, state;
  };

  void look();      // how far this rank's own threads are
  void tell();      // launches the all-gather
  bool conclude();  // reads it; whether the checkpoint is done
  void begin_commit();
  void finish(bool complete);
  std::string first_reason() const;
  std::int64_t status_of(int rank) const;

  CheckpointFolder folder_;
  Retention retention_;
  std::optional<FileIdentity> run_folder_;  // at the start; none if it was not there
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
  Work told_;
  std::string failure_, reason_;
  std::int64_t written_ = 0, failed_ = 0;
};

}  // namespace phalanx

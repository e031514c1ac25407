// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/checkpoint/folder.h"
#include "engine/checkpoint/retried_task.h"
#include "engine/checkpoint/run_state.h"
#include "engine/checkpoint/write_status.h"
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

/// The CRC-32C of the two parts of a snapshot.
struct SnapshotChecksums {
  std::uint32_t weights = 0, state = 0;
};

/// Flips a bit of the next snapshot that the rank with this recorder (Communicator::recorder()) takes, after its
/// checksums were computed. For tests of what happens then. Thread-safe.
void damage_next_snapshot(const FlightRecorder& rank);

/// The times for which a run tolerates a disk that is slow, full or absent.
struct Patience {
  Seconds wait{10};   // a step waits for the checkpoint before; then the new one waits in memory
  Seconds retry{0};   // at the end, a file that the disk refuses is tried again; 0: it is never tried again
  Seconds hang{600};  // at the end, a file may take to be written

  /// A rank whose files are still being written after this time starts to write them again, under other names, since
  /// the thread that writes may never return. Each attempt gets twice the time of the one before. 0: never.
  Seconds deadline{0};
};

/// Writes checkpoints while training continues: all ranks together, one checkpoint at a time.
///
/// save() copies this rank's share and returns, and a thread writes the copy to disk. After every step, ranks exchange
/// their progress (write_status.h). When all have written their files, rank 0's thread completes the manifest, renames
/// the folder, and removes checkpoints that are not to be kept. The files of all ranks must be in the same file system.
///
/// A rank that has not written its files within Patience::deadline warns, and writes them again. A checkpoint that the
/// disk refuses is tried again until a newer one waits (Patience::retry). If the disk is so slow that a step would wait
/// for longer than Patience::wait, the newest checkpoint waits in memory, in place of an older one that waits, and no
/// step waits again until one has been written.
///
/// If the folder that contains `folder` was removed or renamed since the start, nothing is written, because writing
/// would create it again. Errors are logged, and the checkpoint is abandoned on all ranks, without leaving files. Older
/// checkpoints are kept, and the next one is attempted as usual.
///
/// All calls are collective and must come from one thread.
class Checkpointer {
 public:
  /// `state` must outlive this object. With `checksums`, the checksum of a copy is computed when it is made, and a copy
  /// that has changed in memory by the time it is written is abandoned.
  Checkpointer(CheckpointFolder folder, Retention retention, CommunicatorPtr world, const RunState& state,
               Patience patience = {}, bool checksums = false);

  /// Waits a moment for its threads, but not for a disk that hangs; uncommitted files stay for the next run to remove.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// Begins a checkpoint, after the previous one is complete or Patience::wait is over. `manifest` must be the same on
  /// all ranks; this function sets its `ranks` and `files`.
  void save(Manifest manifest, bool replicas_equal);

  /// Must be called once per step. Does nothing, and does not communicate, while no checkpoint is being written.
  void advance();

  /// Blocks until all checkpoints are complete or abandoned, but no longer than Patience allows.
  void settle();

  /// Returns the reason why the last settled checkpoint was abandoned: the reason of the first rank that had one, the
  /// same on all ranks. Empty if the checkpoint was written, or if there was none.
  const std::string& failure() const { return failure_; }
  std::int64_t written() const { return written_; }  // since the start
  std::int64_t failed() const { return failed_; }

  /// Returns what a person should know about the disk, once: that it refuses a checkpoint, is too slow, or works again.
  /// Otherwise returns an empty string. The same on all ranks.
  std::string take_notice();

 private:
  using Clock = std::chrono::steady_clock;

  // A checkpoint in memory. Shared with the thread that writes it.
  struct Share {
    Manifest manifest{};
    Snapshot snapshot{};
    std::optional<SnapshotChecksums> expected{};  // of the snapshot when it was taken; empty: unknown
  };
  using SharePtr = std::shared_ptr<Share>;

  // The files of one attempt to write a share, shared with its thread. A thread that hangs may go on when another
  // attempt has replaced its own; then it must not touch the files any more.
  struct Attempt {
    FileRecord weights{}, state{};
    std::atomic<bool> replaced{false};
  };

  bool busy() const { return current_ != nullptr; }
  SharePtr copy(Manifest manifest, bool replicas_equal);
  void begin(SharePtr share);
  void write();
  void check_deadline();
  bool wait_for(Seconds wait, Seconds retry);  // returns false if all ranks stop waiting before the end
  void look();                                 // checks the progress of this rank's own threads
  void conclude();                             // reads the statuses of the last step
  void note_trouble();
  void give_up();
  void begin_commit();
  void finish(bool complete);
  void abandon_all();
  std::string own_trouble() const;
  std::string first_of(const std::string& own) const;  // returns the first text of a rank that is not empty
  std::string name_of_current() const;

  CheckpointFolder folder_;
  Retention retention_;
  Patience patience_;
  bool checksums_;
  std::optional<FileIdentity> run_folder_;  // at the start; empty if it did not exist
  CommunicatorPtr world_;
  const RunState& state_;
  WritePlan plan_;

  SharePtr current_{}, waiting_{}, spare_{};  // being written; to be written next; memory to be used again
  std::unique_ptr<RetriedTask> writing_{}, commit_{};
  std::shared_ptr<Attempt> attempt_{};  // of writing_
  int attempts_ = 0;                    // to write the files of the current checkpoint
  Clock::time_point task_started_{};    // of writing_ or commit_
  std::string late_{};                  // says that the current checkpoint is past its deadline on this rank
  WriteStatus mine_{};
  WriteStatuses statuses_;
  bool behind_ = false;        // the disk was too slow for the last checkpoint: no step waits for it
  bool told_ = false;          // a person knows that the disk refuses checkpoints
  bool trying_again_ = false;  // the disk has refused the current one on some rank
  std::int64_t waits_ = 0;     // calls of wait_for(), the same on all ranks
  bool impatient_ = false;     // rank 0 has stopped waiting in the current one
  std::string failure_, reason_, notice_;
  std::int64_t written_ = 0, failed_ = 0;
};

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/collectives/recording/named_memory.h"
#include "framework/collectives/recording/recording.h"
#include "framework/comm/communicator.h"
#include "framework/comm/operations/operation_queue.h"

namespace phalanx::recording {

/// The replayed rank does something else than the recorded one.
class ReplayDifference : public Error {
 public:
  using Error::Error;
};

/// The recording ends here, because the recorded rank was killed or has crashed.
class RecordingEnded : public Error {
 public:
  using Error::Error;
};

/// The replay of one rank, whose operations are answered from a recording. Its communicators check that the rank asks
/// for the recorded operations in the recorded order, with the recorded inputs, and give it the recorded results. The
/// first difference is a ReplayDifference, thrown where the rank waits for the operation, that names the step, the
/// operation and the parameters in its input.
///
/// A receive that the recorded rank has abandoned (abandonable.h) has no result. It makes no difference unless the
/// replayed rank waits for it.
///
/// Thread-safe.
class Replay : public std::enable_shared_from_this<Replay> {
 public:
  explicit Replay(std::unique_ptr<Recording> recording) : recording_(std::move(recording)) {}

  /// Returns the world of the rank. Operations are complete when they are waited for, in the order of launch.
  CommunicatorPtr world();

  Recording& recording() { return *recording_; }
  NamedMemory& memory() { return memory_; }
  OperationQueue& queue() { return queue_; }

  /// Until attach(), operations are answered as if all ranks had the tensors of this one. This is for a rank that
  /// restores a checkpoint, which the recorded rank did not do there. attach() goes on with Recording::begins_at().
  void detach() { detached_ = true; }
  void attach();
  bool detached() const { return detached_; }

  /// Also compares the recording, operation by operation, with the recording of the same rank in another run. Must be
  /// called before world().
  void compare_with(std::unique_ptr<Recording> other) { other_ = std::move(other); }

  /// Returns the first operation so far in which the other run differs, with the parameters in its input or result that
  /// differ and the bucket that has them; empty: none.
  std::string difference_from_other() const;

  /// Must be called when a step begins; the first step is 1.
  void begin_step(std::int64_t step);

  /// Compares the checksum of the rank's parameters after a step, or at the end of the run. Throws ReplayDifference.
  void end_step(std::int64_t step, std::uint64_t checksum);
  void end_run(std::uint64_t checksum);

  /// Performs an operation of a group from the recording. Returns false for a receive without a recorded result: the
  /// recorded rank did not wait for the message, or not long enough. Waiting for it must end in throw_unanswered().
  [[nodiscard]] bool follow(std::uint32_t group, Operation& operation, bool measured);

  /// Returns the child of a split: its number; nullopt: this rank has none.
  std::optional<std::uint32_t> follow_split(std::uint32_t group);

  /// Returns the number of the rank's next connection to a server. Throws ReplayDifference if the recorded rank
  /// connected to another one, and RecordingEnded if it ended before that.
  std::uint32_t follow_connection(const std::string& name);

  /// Returns the answer to a request to a server, and compares the request with the recorded one. `asked` is the entry
  /// of the request: its sequence number is 0 for the attempt to connect, and set here, in the order of the calls, for
  /// others. `sent` is the tensor that it sends, or undefined, and `what` names the request in messages. Returns
  /// nullopt if the recorded rank did not wait for an answer; then waiting for it must end in throw_unanswered(). Not
  /// to be called while detached().
  std::optional<RecordedOperation> follow_request(EntryHead asked, const at::Tensor& sent, const std::string& what);
  [[noreturn]] void throw_unanswered(const std::string& what);

  /// Returns the first difference, or an empty string. A difference in a work that was not waited for is found here
  /// only.
  std::string difference() const;

  std::int64_t operations() const { return operations_; }

 private:
  std::uint64_t next_in(const Stream& stream);
  std::optional<RecordedOperation> find(std::uint32_t group, const Call& call);
  RecordedOperation expect(std::uint32_t group, const Call& call);
  void require_same_call(const RecordedOperation& recorded, const Call& call);
  void compare_inputs(const RecordedOperation& recorded, const at::Tensor& input);
  void compare_runs(const RecordedOperation& recorded, const at::Tensor& input, const at::Tensor& result);
  [[noreturn]] void differ(const std::string& what);

  std::unique_ptr<Recording> recording_, other_;
  NamedMemory memory_;
  OperationQueue queue_;
  std::atomic<bool> detached_{false};
  std::atomic<std::int64_t> step_{0}, operations_{0};
  std::atomic<std::uint32_t> servers_{0};
  mutable std::mutex mutex_;              // protects everything below
  bool begins_later_ = false;             // attach() was called, so requests and receives do not begin with 1
  std::map<Stream, std::uint64_t> last_;  // the number of the last request or receive of each stream
  std::string difference_, difference_from_other_;
};

}  // namespace phalanx::recording

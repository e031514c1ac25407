// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "framework/collectives/recording/format.h"

namespace phalanx::recording {

/// The order in which operations are recorded: the collectives of a group are in one stream, the messages of a group in
/// one for each direction, peer and tag, and the answers of servers in one for each connection.
struct Stream {
  std::uint32_t group = 0;
  Op op = Op::kNone;     // kSend or kRecv; kNone: collectives
  int peer = 0;          // of messages
  int tag = 0;           // of messages
  bool answers = false;  // of a server; `group` is the number of the connection

  static Stream of(std::uint32_t group, const Call& call) {
    const bool message = call.op == Op::kSend || call.op == Op::kRecv;
    return message ? Stream{group, call.op, call.peer, call.tag} : Stream{.group = group};
  }
  static Stream of(const EntryHead& head) {
    return head.kind == EntryKind::kAnswer ? Stream{.group = head.group, .answers = true} : of(head.group, head.call());
  }
  auto operator<=>(const Stream&) const = default;
};

struct RecordingFile;

/// The place of an operation in a recording.
struct Located {
  EntryHead head{};
  std::uint64_t order = 0;  // number of operations that were recorded before it
  std::shared_ptr<const RecordingFile> file{};
  std::int64_t payload_at = 0;
};

/// An operation that has been read, and its payload in parts.
struct RecordedOperation {
  EntryHead head{};
  std::vector<std::uint32_t> piece_sums{};
  std::string received{};  // the elements, or the text of a failure
};

/// The recording of one rank, for reading. Thread-safe.
class Recording {
 public:
  /// Opens the recording of rank `rank` in a folder and reads where its entries are. A last entry that is incomplete is
  /// ignored, because the rank was killed while it wrote. Throws ConfigError if there is no recording of this rank,
  /// naming the ranks that are there, and DataError with file and offset if a file is no recording, has another
  /// version, or is damaged.
  Recording(const std::string& folder, int rank);

  const Header& header() const { return header_; }
  const GroupInfo& group(std::uint32_t number) const;
  std::uint32_t groups() const { return static_cast<std::uint32_t>(groups_.size()); }

  /// Returns the name of a connection to a server, or nullopt if the rank has made fewer.
  std::optional<std::string> server(std::uint32_t number) const;

  /// Returns the next operation of a stream, or nullopt if there is no other one. Throws DataError if it is damaged.
  std::optional<RecordedOperation> next(const Stream& stream);

  /// Returns the operation of a stream with this number, and drops those before it; nullopt if it is not there. Throws
  /// DataError if it is damaged.
  std::optional<RecordedOperation> find(const Stream& stream, std::uint64_t sequence);

  /// Returns the sequence number of the first remaining operation of a stream, or nullopt if none remains.
  std::optional<std::uint64_t> first_sequence(const Stream& stream) const;

  /// Returns the head of the first operation that next() has not returned, in the order in which they were recorded.
  std::optional<EntryHead> first_left() const;

  /// Returns the step at which the operations begin that follow a checkpoint, because earlier ones were dropped; 0: the
  /// recording has all operations.
  std::int64_t begins_at() const { return begins_at_; }

  /// Drops what next() has not returned of the operations before the first step, and goes on with begins_at().
  void skip_to_segment();

  /// Returns the checksum of the rank's parameters after a step, or nullopt if it is not recorded.
  std::optional<std::uint64_t> parameters_after(std::int64_t step) const;

  /// Returns the checksum of the parameters at the end; nullopt if the run did not end well.
  const std::optional<std::uint64_t>& parameters_at_end() const { return at_end_; }

  /// Returns the last step that has been recorded completely.
  std::int64_t last_step() const { return steps_.empty() ? 0 : steps_.rbegin()->first; }

  /// Returns all operations that are left, by stream, in the order of the recording. For comparisons.
  const std::map<Stream, std::deque<Located>>& left() const { return streams_; }

  std::int64_t bytes() const { return bytes_; }

 private:
  using Streams = std::map<Stream, std::deque<Located>>;

  void scan(const std::string& path, Streams& streams);
  void add(const Located& entry, Streams& streams);

  std::int64_t begins_at_ = 0;
  std::int64_t bytes_ = 0;
  Header header_;
  std::vector<GroupInfo> groups_;
  std::vector<std::string> servers_;
  std::map<std::int64_t, std::uint64_t> steps_;
  std::optional<std::uint64_t> at_end_;
  mutable std::mutex mutex_;
  std::uint64_t found_ = 0;
  Streams streams_, later_;
};

/// Returns the ranks that have a recording in a folder, in ascending order.
std::vector<int> recorded_ranks(const std::string& folder);

/// Describes an operation for messages: "all_reduce(sum) of 1000 Float, operation 12 of group world, in step 3".
std::string describe(const EntryHead& head, const Recording& recording);

}  // namespace phalanx::recording

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace phalanx {

/// An operation of a rank as its flight recorder has it. Times are in seconds since the epoch; 0: not yet.
struct PicturedOperation {
  std::uint64_t number = 0;    // over all groups, from 1
  std::uint64_t sequence = 0;  // in its group, from 1
  std::string group{};
  std::string op{};        // "all_reduce"
  std::string call{};      // "all_reduce(sum) of 1000 Float": what must be the same on all ranks
  std::string what{};      // what it moves, such as "bucket 1: fc2.bias to conv1.weight"; empty: unknown
  std::string place{};     // file and line of the program that issued it; empty: unknown
  int peer = -1, tag = 0;  // of messages; the peer is a rank of the group
  std::string state{};     // "launched", "running", "done" or "failed"
  double launched = 0, started = 0, finished = 0;

  /// Returns "all_reduce #12 of world".
  std::string name() const { return op + " #" + std::to_string(sequence) + " of " + group; }
  bool is_message() const { return op == "send" || op == "recv"; }
  /// Returns true if all ranks of the group call it. "messages" are several messages that were issued together.
  bool is_collective() const { return !is_message() && op != "messages"; }
  bool operator==(const PicturedOperation&) const = default;
};

/// The known state of one rank at one time.
struct RankPicture {
  enum class Process {
    kRuns,
    kStopped,  // by SIGSTOP, by Ctrl-Z or by a debugger
    kGone,     // there is no such process any more
    kUnknown,  // it is on another host, or belongs to another user
  };

  int rank = 0;
  std::string host{};
  std::int64_t process = 0;  // its id; 0: unknown
  Process state = Process::kUnknown;
  double taken = 0;           // when the operations were read; 0: they never were
  std::string activity{};     // to_string(Activity); empty: unknown
  double activity_since = 0;  // when it began
  std::int64_t step = 0;      // completed steps
  std::string dataset{};      // name of the dataset, where the rank loads one
  std::string blocked_in{};   // the system call in which the rank's thread sleeps, such as "read of /data/a.bin"
  double waiting_since = 0;   // when its oldest running operation was seen first; 0: none is running
  std::vector<PicturedOperation> operations{};  // the last ones, oldest first

  bool operator==(const RankPicture&) const = default;
};

/// The file in the log folder of a run with the last picture of a stall: to_json() of a JobPicture.
inline constexpr const char* kHangFile = "hang.json";

/// The knowledge of all ranks of a job.
struct JobPicture {
  int size = 0;                                      // number of ranks
  double taken = 0;                                  // seconds since the epoch
  std::string folder{};                              // log folder of the run; empty: unknown
  std::vector<RankPicture> ranks{};                  // of those that are known, in order of rank
  std::map<std::string, std::vector<int>> groups{};  // members of groups, ascending; absent: unknown
  bool only_operations = false;  // nothing but their operations is known of the ranks: it comes from dumps

  const RankPicture* find(int rank) const;
};

/// Converts to JSON (docs/debugging.md has the schema), and back. `sentence` is explain() of the picture. The second
/// function throws DataError, which begins with `source`, for a text that is not such a document.
std::string to_json(const JobPicture& picture, const std::string& sentence);
JobPicture job_picture_from_json(const std::string& text, const std::string& source);

/// Does the same for one rank.
std::string to_json(const RankPicture& picture);
RankPicture rank_picture_from_json(const std::string& text, const std::string& source);

/// Returns "runs", "stopped", "gone" or "unknown".
std::string to_string(RankPicture::Process state);

}  // namespace phalanx

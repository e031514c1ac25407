// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// The environment variable with the path of the meeting folder. Absent: lost ranks of this job are not replaced.
constexpr const char* kMeetingFolder = "PHALANX_MEETING_FOLDER";

/// The environment variable of a newcomer with its description (to_text()).
constexpr const char* kNewcomer = "PHALANX_NEWCOMER";

/// Newcomer::in_place_of of a process that joins a job in addition to the ranks that it has had.
constexpr int kNobody = -1;

/// A process that takes the place of a lost rank (faults.on_lost_rank: replace), or joins in addition. A number in the
/// job is never used again: newcomers have numbers that follow the numbers of the ranks with which the job began.
struct Newcomer {
  int number = 0;
  int in_place_of = 0;                              // the number of the lost rank, or kNobody
  int place = 0;                                    // the rank that had this place when the job began
  int local_rank = 0;                               // the share of the cores of its host that it uses, and the number
  int local_size = 1;                               // of these shares
  std::chrono::system_clock::time_point lost_at{};  // by the clock of the launcher
};

std::string to_text(const Newcomer& newcomer);
Newcomer parse_newcomer(const std::string& text);

/// One attempt of all ranks of a job, and of the newcomers that the first rank has invited, to form a new world.
struct Attempt {
  int number = 0;
  std::vector<int> members{};  // the numbers in the job of the ranks that there are, in their order
  std::vector<Newcomer> newcomers{};

  /// Returns the rank of the first newcomer in the new world. The others keep their order.
  int first() const { return static_cast<int>(members.size()); }
  int size() const { return first() + static_cast<int>(newcomers.size()); }

  /// Returns the numbers in the job of all ranks of the new world.
  std::vector<int> numbers() const;
};

std::string to_text(const Attempt& attempt);
Attempt parse_attempt(const std::string& text);

/// The folder in which the launcher, the ranks and newcomers of a job leave notes for each other. All hosts of the job
/// see it, and only its user can enter it. The launcher removes it at the end of the job. Each function throws Error if
/// the folder cannot be written or read. Once an invitation is written, what follows in an attempt needs no more space
/// but for arrive() and the file store, without which no rank connects: a full disk cannot divide the ranks. It costs
/// no newcomer either: the attempt is postponed.
///
/// It may be on a network file system: notes appear whole, by a name that is new, and a look for one asks the server,
/// whatever this host remembers of the folder. On NFS, this requires close-to-open consistency, which the option nocto
/// switches off.
class MeetingFolder {
 public:
  explicit MeetingFolder(std::string path) : path_(std::move(path)) {}

  // The launcher, its agents, and a newcomer that is asked to stop.
  void note_end(int number) const;    // the process of the rank or newcomer `number` has ended
  bool takes_part(int number) const;  // returns true once a newcomer is a rank

  // A newcomer. It takes part in the attempt to which it is invited, or ends.
  void wait(const Newcomer& self) const;  // it has loaded its data
  std::optional<Attempt> invitation(int number) const;
  void wait_again(int number) const;  // the attempt to which it was invited is postponed

  // The ranks.
  // Ascending, without those that have ended or been invited. Empty if somebody has removed the folder.
  std::vector<Newcomer> waiting() const;
  // On the first rank. If not all can be invited, the attempt is postponed.
  Attempt invite(const std::vector<int>& members, const std::vector<Newcomer>& newcomers) const;
  bool has_ended(int number) const;
  void note_part(const Attempt& attempt) const;  // the newcomers take part

  // Both, in an attempt.
  void arrive(const Attempt& attempt, int rank) const;
  bool has_arrived(const Attempt& attempt, int rank) const;
  std::string store(const Attempt& attempt) const;  // the path of the file store
  bool has_folder(const Attempt& attempt) const;    // false: somebody has removed its folder

  /// Returns true if this rank can write as much to the folder of an attempt as connecting needs.
  bool has_room(const Attempt& attempt, int rank) const;

  /// Returns true if it is decided that the new world is not used.
  bool is_decided_against(const Attempt& attempt) const;

  /// Decides that the new world is not used, unless it is decided already, for a reason that newcomers can wait out:
  /// the folder cannot be written. They wait again, and are invited later. Never throws.
  void postpone(const Attempt& attempt) const;
  bool is_postponed(const Attempt& attempt) const;

  /// Decides whether the new world is used. The first call of any process decides, and all calls return its decision.
  bool decide(const Attempt& attempt, bool use) const;

 private:
  std::string file(const std::string& kind, int number) const;
  std::string file(const Attempt& attempt, const std::string& name) const;

  std::string path_;
};

}  // namespace phalanx

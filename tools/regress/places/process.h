// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace phalanx::regress {

/// The program that a Process runs, and its surroundings.
struct ProcessOptions {
  std::vector<std::string> command{};  // command[0] is searched on PATH
  std::string folder{};                // working folder; empty: inherited
  std::string input{};                 // file for standard input; empty: /dev/null
  std::string output{};                // file for standard output, which is truncated; empty: inherited
  std::string errors{};                // file for standard error, which is truncated; empty: inherited
  std::vector<std::pair<std::string, std::string>> variables{};  // set in its environment
  bool ends_group = true;  // once the program has ended, kill the processes left in its process group
};

/// A child process that leads a new session, so that a Ctrl-C in the terminal of this process does not reach it. The
/// kernel kills it when this process ends, in whatever way. Not thread-safe; must be created by the main thread.
class Process {
 public:
  /// Throws Error if the program cannot be started.
  explicit Process(const ProcessOptions& options);
  ~Process();  // kills the group's processes and waits for their end
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Returns the exit status, or 128 plus the number of the signal that ended the process, once it has ended.
  std::optional<int> poll();

  /// Waits for the end. Returns nullopt if the process still runs after `seconds`.
  std::optional<int> wait(double seconds);

  /// Sends a signal to the child, or to all processes of its group.
  void signal(int number);
  void signal_group(int number);

  /// Returns true if the process ended by a signal that neither signal() nor signal_group() sent.
  bool ended_by_others() const { return by_signal_ && !signaled_; }

 private:
  pid_t process_ = -1;
  bool ends_group_ = true;
  std::optional<int> status_{};
  bool by_signal_ = false;
  bool signaled_ = false;
};

/// The result of capture().
struct Captured {
  int status = 0;
  std::string output{};  // standard output, without line ends at its end
  std::string errors{};  // standard error, likewise
};

/// Runs a program to its end, but kills it after `seconds`; the status is then 124. Status 127: it cannot be started.
Captured capture(const std::vector<std::string>& command, const std::string& folder = "", double seconds = 60);

/// The variable that marks the processes of a regress and everything that they start, on all hosts. Its value is
/// PlaceOptions::owner.
inline constexpr const char* kOwnerVariable = "PHALANX_REGRESS_OWNER";

/// Kills all processes of this user on this host that have inherited kOwnerVariable with this value, and waits until
/// they have ended, for at most 10 s. Returns how many there were.
int kill_owned(const std::string& owner);

}  // namespace phalanx::regress

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace phalanx {

/// The beats between the launcher and its agents, from which both know that a host has become silent.
///
/// An agent numbers its beats, and the launcher answers each of them with its number. An answer is a lease of the host:
/// for `length` from the time at which the agent has sent this beat, its ranks may act. An agent without a lease kills
/// its ranks. The launcher, which has received each beat after it was sent, declares the ranks lost when it has
/// received none for the length of a lease and a margin. At that time all leases that it has given are over, however
/// long beats and answers were on the way, and whichever direction has failed. This assumes that the clocks of two
/// hosts do not differ in speed by more than a tenth.

/// Returns the length of a lease: faults.lost_after, but at least 5 s, if the others go on without a silent host, and
/// 20 s otherwise. A busy machine may delay an agent or the launcher by seconds.
std::chrono::nanoseconds lease_length(bool goes_on, double lost_after);

/// Returns the interval between beats.
std::chrono::milliseconds beat_interval(std::chrono::nanoseconds lease);

/// Returns the time without a beat after which the lease of a host is over for certain, and its ranks are killed, or,
/// if its agent is stopped, find that they have no lease.
std::chrono::nanoseconds silence_of_lost_host(std::chrono::nanoseconds lease);

/// The lease of an agent. Times are those of a clock that goes on while the host is suspended (boot_time()).
class AgentLease {
 public:
  using Time = std::chrono::nanoseconds;

  /// The first lease needs no answer.
  AgentLease(Time length, Time now) : length_(length), end_(now + length) {}

  /// Returns the number of a beat that is sent now.
  std::int64_t send(Time now);

  /// Takes the answer to a beat. Numbers of other beats than those of this lease are ignored.
  void answered(std::int64_t beat);

  Time end() const { return end_; }

 private:
  Time length_, end_;
  std::int64_t last_ = 0;
  std::deque<std::pair<std::int64_t, Time>> sent_;  // beats that may extend the lease
};

/// The launcher's view of the lease of a host. A host is not silent before its first beat, unless that is expected:
/// starting the ranks of a job has other deadlines.
class HostBeats {
 public:
  using Clock = std::chrono::steady_clock;

  explicit HostBeats(std::chrono::nanoseconds lease) : limit_(silence_of_lost_host(lease)) {}

  void heard(Clock::time_point now) { last_ = now; }

  /// Sets the time from which a host that has sent no beat yet counts as silent.
  void expect_by(Clock::time_point time) { last_ = time; }

  bool is_silent(Clock::time_point now) const { return last_ && now - *last_ >= limit_; }

  /// Returns the seconds since the last beat.
  double silent_for(Clock::time_point now) const;

 private:
  std::chrono::nanoseconds limit_;
  std::optional<Clock::time_point> last_;
};

/// Returns a beat as it appears among what an agent and its ranks write to standard output: a line after a zero byte,
/// which no text has.
std::string beat_text(std::int64_t number);

/// Separates the beats, and other lines after a zero byte, from the output of an agent and its ranks. It keeps no more
/// than the beginning of a line.
class BeatReader {
 public:
  struct Result {
    std::string text{};  // everything else
    std::vector<std::int64_t> beats{};
    std::vector<std::string> lines{};  // that come after a zero byte, and are no beats
  };

  /// Takes the next part, which may begin and end within a beat.
  Result read(std::string_view part);

 private:
  std::optional<std::string> beat_;  // the beginning of a beat
};

}  // namespace phalanx

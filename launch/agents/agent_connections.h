// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/descriptor.h"
#include "launch/agents/beats.h"
#include "launch/local/supervisor.h"

namespace phalanx {

/// An agent as the launcher sees it.
struct AgentConnection {
  std::size_t host;  // index of its host
  HostBeats beats;
  std::shared_ptr<Descriptor> socket{};
  BeatReader reader{};
  double silent_for = 0;     // seconds; 0: it has not been silent until its lease was over
  bool lost = false;         // the others go on without it
  bool told_others = false;  // that its ranks have ended for certain
  bool released = false;     // it was told to end, since the job has
  bool joined = false;       // this process cannot start another one on its host
};

/// The agents of a job, in the order of their start, and the sockets by which the launcher speaks with them. Each agent
/// is the child of the launcher's supervisor that has the same index. A host may have several, one after the other.
/// Not thread-safe.
class AgentConnections {
 public:
  /// `lease` is the length of a lease. `take` gets the lines of agents that are no beats (BeatReader::Result::lines).
  AgentConnections(std::chrono::nanoseconds lease, std::function<void(const std::vector<std::string>& lines)> take)
      : lease_(lease), take_(std::move(take)) {}

  std::size_t size() const { return agents_.size(); }
  AgentConnection& operator[](std::size_t agent) { return agents_.at(agent); }
  const AgentConnection& operator[](std::size_t agent) const { return agents_.at(agent); }

  /// Starts a process that is an agent, or speaks with one, over the socket that it gets. The supervisor reads from the
  /// socket from now on. Returns the agent. Throws Error.
  std::size_t start(std::size_t host, Supervisor& supervisor, const std::function<int(const Descriptor& socket)>& body);

  /// Sends text to an agent. One that has ended does not need it any more. With MSG_DONTWAIT in `flags`, one that does
  /// not read gets no more than the system keeps.
  void send(std::size_t agent, const std::string& text, int flags = 0);

  /// Sends text to all agents but this one. Those that do not read get no more than the system keeps.
  void send_to_others(std::size_t agent, const std::string& text);

  /// Sends the order that a signal stands for (Supervisor::Policy::deliver). After SIGKILL, no order can follow, and
  /// the process must get the signal as well if this returns false.
  bool tell(std::size_t agent, int signal);

  /// Answers beats, and passes on what else has arrived. Reads at least all that the system had kept at the beginning,
  /// but leaves the rest of a stream without an end for later, because other agents wait for answers. Returns false at
  /// the end.
  bool read(std::size_t agent);

  /// Reads from all of them.
  void read_all();

 private:
  const std::chrono::nanoseconds lease_;
  std::function<void(const std::vector<std::string>& lines)> take_;
  std::deque<AgentConnection> agents_;
};

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/agents/share.h"

namespace phalanx {

/// The processes of a job on its hosts, by their numbers in the job, and the slots that are free for more of them. It
/// knows no agents and no sockets. Not thread-safe.
class HostRanks {
 public:
  /// A slot of a host, which a process has to itself.
  struct Place {
    std::size_t host = 0;  // index of the host
    int slot = 0;          // from 0
  };

  /// The processes of `shares` run. The hosts have the same order.
  explicit HostRanks(const std::vector<HostShare>& shares);

  std::size_t hosts() const { return hosts_.size(); }
  const std::string& name(std::size_t host) const { return hosts_.at(host).name; }

  /// Returns the number of shares into which the cores of the host of a place are divided: with the ranks with which
  /// the job began, as many as these, and for a further one, as many as the host has slots.
  int shares_of_cores(Place place) const;

  /// Adds a host without processes. Returns its index.
  std::size_t add(const std::string& name, int slots);

  /// Returns the number of processes that run.
  int running() const;

  /// Nothing is placed on a host that is lost. Its processes have ended.
  void lose(std::size_t host);
  bool is_lost(std::size_t host) const { return hosts_.at(host).lost; }

  /// Returns the slot that the process in place of `number` gets: that of `number` if it is free, another one of its
  /// host, or the first one of another host. Returns nothing if no slot is free.
  std::optional<Place> room_for(int number) const;

  /// Returns the first free slot of a host, or nothing if it has none.
  std::optional<Place> room_on(std::size_t host) const;

  /// Returns the number of slots of all hosts that are free.
  int free_slots() const;

  /// Notes that a process runs in a slot, which must be free, and that a process has ended.
  void start(int number, Place place);
  void end(int number);

  bool is_running(int number) const;

  /// Returns the numbers of the processes of a host that run, and of all that it has ever had, ascending.
  std::vector<int> running(std::size_t host) const;
  std::vector<int> all(std::size_t host) const;

 private:
  struct Host {
    std::string name{};
    int slots = 0;
    int ranks = 0;  // with which the job began
    bool lost = false;
  };

  struct Process {
    Place place{};
    bool running = true;
  };

  std::optional<int> free_slot(std::size_t host, std::optional<int> wanted = {}) const;

  std::vector<Host> hosts_;
  std::map<int, Process> processes_;
};

}  // namespace phalanx

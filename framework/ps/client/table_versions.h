// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "framework/base/error.h"
#include "framework/ps/protocol/channel.h"
#include "framework/ps/protocol/deadline.h"

namespace phalanx::ps {

/// A server that was restarted does not have a table of its client.
class TableMissing : public Error {
 public:
  using Error::Error;
};

/// The versions of a client's tables on one server, by which the client notices that a server which was restarted has
/// resumed from an older checkpoint. Only updates that this client knows of are counted. Not thread-safe.
class TableVersions {
 public:
  void add(std::uint32_t number, const std::string& name) { tables_.try_emplace(number, NamedVersion{name}); }
  void remove(std::uint32_t number) { tables_.erase(number); }
  void clear() { tables_.clear(); }

  /// Records the version that the server has reported. Tables that were not added are ignored.
  void advance(std::uint32_t number, std::int64_t version);

  /// Asks a server that was restarted for the version of every table, over a connection that no one else uses. Counts
  /// the updates that it has lost. Throws TableMissing if it does not have one of the tables, and ConnectionError like
  /// round_trip().
  void ask(Channel& channel, Clock::time_point deadline, const std::atomic<bool>& stopping);

  /// Takes the versions and the lost updates from `renewed`, a copy of this object for which ask() has been called.
  /// Tables that have been removed in the meantime stay removed.
  void merge(const TableVersions& renewed);

  /// Returns how many acknowledged updates servers have lost.
  std::int64_t lost_updates() const { return lost_updates_; }

 private:
  struct NamedVersion {
    std::string name;
    std::int64_t version = 0;  // the last version received from the server
  };

  std::map<std::uint32_t, NamedVersion> tables_;  // keyed by the number of the table
  std::int64_t lost_updates_ = 0;
};

}  // namespace phalanx::ps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/comm/call.h"

namespace phalanx {

/// The last kEntries operations of one rank, over all its communicators: always on, bounded, and cheap enough (a few
/// dozen nanoseconds an operation) to be looked at when something went wrong, by a test, or by a trace.
///
/// Thread-safe and without locks, but for add_group() and records(). An entry that is overwritten while it is read is
/// left out.
class FlightRecorder {
 public:
  static constexpr std::size_t kEntries = 4096;

  enum class State : std::uint8_t { kLaunched, kRunning, kDone, kFailed };

  struct Record {
    std::uint64_t number = 0;    // over all groups, from 1
    std::uint64_t sequence = 0;  // in its group, from 1
    std::string group;
    Call call;
    State state = State::kLaunched;
    std::int64_t launched_ns = 0;  // since the recorder was made; 0 for what has not come yet
    std::int64_t started_ns = 0;
    std::int64_t finished_ns = 0;
  };

  FlightRecorder();
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  /// A communicator's place in the recorder, for as long as the communicator launches operations.
  class Group {
   public:
    explicit Group(std::string name) : name_(std::move(name)) {}
    const std::string& name() const { return name_; }

   private:
    friend class FlightRecorder;
    std::string name_;
    std::atomic<std::uint64_t> launched_{0};
  };
  std::shared_ptr<Group> add_group(std::string name);

  /// An operation, from its launch on: where its entry lies.
  struct Ticket {
    std::uint64_t number = 0;    // 0: not recorded
    std::uint64_t sequence = 0;  // in its group
  };
  Ticket launched(Group& group, const Call& call);
  void started(const Ticket& ticket);
  void finished(const Ticket& ticket, bool well);

  /// Oldest first.
  std::vector<Record> records() const;

 private:
  struct Entry;

  std::unique_ptr<Entry[]> entries_;
  std::atomic<std::uint64_t> launched_{0};
  std::int64_t start_ns_;
  std::int64_t start_ticks_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Group>> groups_;  // those that an entry may name: the recorder is bounded otherwise
};

std::string_view to_string(FlightRecorder::State state);

}  // namespace phalanx

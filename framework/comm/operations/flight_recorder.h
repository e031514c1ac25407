// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/comm/operations/call.h"

namespace phalanx {

/// The last kEntries operations of one rank, over all its communicators. It is always on, bounded, and cheap (a few
/// dozen nanoseconds per operation). It is read after an error, by tests, and for traces.
///
/// Thread-safe, and lock-free except for add_group() and records(). An entry that is overwritten while it is read is
/// skipped.
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
    std::int64_t launched_ns = 0;  // since the recorder was made; 0 if it has not happened yet
    std::int64_t started_ns = 0;
    std::int64_t finished_ns = 0;
    std::string place{};  // line of the program that issued it, such as "a/b.cc:12"; empty: unknown
  };

  FlightRecorder();
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  /// The place of a communicator in the recorder. The communicator holds it for as long as it launches operations.
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

  /// Identifies the entry of an operation, from its launch on.
  struct Ticket {
    std::uint64_t number = 0;    // 0: not recorded
    std::uint64_t sequence = 0;  // in its group
  };
  Ticket launched(Group& group, const Call& call);
  void started(const Ticket& ticket);
  void finished(const Ticket& ticket, bool well);

  /// Returns the recorded operations, oldest first.
  std::vector<Record> records() const;

 private:
  struct Entry;

  std::unique_ptr<Entry[]> entries_;
  std::atomic<std::uint64_t> launched_{0};
  std::int64_t start_ns_;
  std::int64_t start_ticks_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Group>> groups_;  // groups that an entry may name; no others, to bound memory
};

std::string_view to_string(FlightRecorder::State state);

}  // namespace phalanx

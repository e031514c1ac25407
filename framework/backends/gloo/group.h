// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "framework/backends/gloo/transport.h"
#include "framework/comm/call.h"
#include "framework/comm/store.h"

namespace phalanx::gloo {

/// One collective of a group: what tells its messages from those of others, and how long it may wait.
///
/// The identity is a hash of the call and its number, so messages of ranks that call different operations never meet:
/// such calls time out. Were they to meet, Gloo would take what is too short, and end the process for what is too long.
struct Turn {
  std::shared_ptr<::gloo::Context> context;
  std::uint64_t number = 0;  // in the group, from 1
  std::uint64_t identity = 0;
  std::chrono::milliseconds timeout{};

  std::uint32_t tag() const { return static_cast<std::uint32_t>(identity); }

  /// For messages of `bytes` that are not sent by Gloo's own algorithms.
  std::uint64_t slot(std::size_t bytes) const;
};

/// One rank's view of a group of connected ranks: counts its collectives and turns what goes wrong into CommErrors.
///
/// After an error other than kMismatch the group is broken: its connections are closed, so that the peers notice, and
/// every later call throws that error again. Thread-safe.
class Group {
 public:
  Group(std::string name, std::shared_ptr<Transport> transport);

  int rank() const { return transport_->rank; }
  int size() const { return transport_->size; }
  const std::string& name() const { return name_; }
  Transport& transport() const { return *transport_; }
  std::chrono::milliseconds timeout() const { return transport_->getTimeout(); }
  std::string describe() const;  // for messages: "world, rank 0 of 2"

  /// Runs body(turn), the group's next collective. Ranks call them in the same order.
  template <class Body>
  void collective(const Call& call, std::optional<Seconds> timeout, const Body& body) {
    const Turn turn = next_turn(call, timeout);
    guard([&] { return std::string(to_string(call.op)) + " #" + std::to_string(turn.number); }, [&] { body(turn); });
  }

  /// Runs `body`, any operation; its errors name what().
  template <class What, class Body>
  void guard(const What& what, const Body& body) {
    throw_if_broken();
    try {
      body();
    } catch (...) {
      fail(what() + " of " + describe());
    }
  }

 private:
  Turn next_turn(const Call& call, std::optional<Seconds> timeout);
  void throw_if_broken() const;
  [[noreturn]] void fail(const std::string& where);  // in a handler

  std::string name_;
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<::gloo::Context> context_;
  std::atomic<std::uint64_t> turns_{0};
  std::atomic<bool> broken_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;  // set once, before broken_
};

}  // namespace phalanx::gloo

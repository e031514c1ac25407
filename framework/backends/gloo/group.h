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
#include "framework/comm/operations/call.h"
#include "framework/comm/store/store.h"

namespace phalanx::gloo {

/// One collective of a group: the identity of its messages and its timeout.
///
/// The identity is a hash of the call and its number, so the messages of ranks that call different operations never
/// match, and such calls time out. If they matched, Gloo would accept messages that are too short and end the process
/// for messages that are too long.
struct CollectiveCall {
  std::shared_ptr<::gloo::Context> context;
  std::uint64_t number = 0;  // in the group, from 1
  std::uint64_t identity = 0;
  std::chrono::milliseconds timeout{};

  std::uint32_t tag() const { return static_cast<std::uint32_t>(identity); }

  /// Returns the slot for messages of `bytes` that Gloo's own algorithms do not send.
  std::uint64_t slot(std::size_t bytes) const;
};

/// One rank's view of a group of connected ranks. It counts the collectives and turns failures into CommErrors.
///
/// After an error other than kMismatch the group is broken: its connections are closed, so that the peers notice, and
/// every later call throws the same error again. Thread-safe.
class Group {
 public:
  Group(std::string name, std::shared_ptr<Transport> transport);

  int rank() const { return transport_->rank; }
  int size() const { return transport_->size; }
  const std::string& name() const { return name_; }
  Transport& transport() const { return *transport_; }
  std::chrono::milliseconds timeout() const { return transport_->getTimeout(); }
  std::string describe() const;  // for messages: "world, rank 0 of 2"

  /// Runs body(turn), the group's next collective. All ranks call them in the same order.
  template <class Body>
  void collective(const Call& call, std::optional<Seconds> timeout, const Body& body) {
    const CollectiveCall collective = next_collective(call, timeout);
    guard([&] { return std::string(to_string(call.op)) + " #" + std::to_string(collective.number); },
          [&] { body(collective); });
  }

  /// Breaks the group, unless it is broken: every later call throws a CommError::kPeerLost with this reason.
  void abandon(const std::string& why);

  /// Runs `body`, any operation. Its errors are prefixed with what().
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
  CollectiveCall next_collective(const Call& call, std::optional<Seconds> timeout);
  void throw_if_broken() const;
  void break_with(std::exception_ptr error);
  [[noreturn]] void fail(const std::string& where);  // must be called in a catch handler

  std::string name_;
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<::gloo::Context> context_;
  std::atomic<std::uint64_t> collectives_{0};
  std::atomic<bool> broken_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;  // set once, before broken_
};

}  // namespace phalanx::gloo

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "framework/base/descriptor.h"
#include "framework/comm/store/store.h"

namespace phalanx::bench {

/// Exchanges lines of text with another process through a stream socket. Not thread-safe.
class LineSocket {
 public:
  /// `name` is the name of the other process in error messages.
  LineSocket(Descriptor socket, std::string name) : socket_(std::move(socket)), name_(std::move(name)) {}

  /// Both throw Error if the other process has ended; receive() also if no line arrives within `timeout`.
  void send(const std::string& line);
  std::string receive(Seconds timeout);

  /// Sends a line and returns the answer.
  std::string ask(const std::string& line, Seconds timeout);

  void close() { socket_.close(); }
  const std::string& name() const { return name_; }

 private:
  Descriptor socket_;
  std::string name_;
  std::string received_;  // received bytes that receive() has not returned yet
};

}  // namespace phalanx::bench

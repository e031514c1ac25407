// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "framework/base/descriptor.h"
#include "framework/ps/message.h"

namespace phalanx::ps {

/// Messages over a connected stream socket; never blocks. Not thread-safe.
class Channel {
 public:
  /// Provides [payload_bytes] of memory for the payload of a message of which only header and text are there yet.
  /// Throws ConnectionError to end the connection.
  using MakeRoom = std::function<at::Tensor(const Message& begun)>;

  Channel(Descriptor socket, MakeRoom make_room) : socket_(std::move(socket)), make_room_(std::move(make_room)) {}

  int socket() const { return socket_.get(); }

  /// The longest text that a message may have, which is kMostText at first. A longer one is a ConnectionError, and no
  /// memory is taken for it.
  void limit_text(std::size_t bytes) { most_text_ = bytes; }

  /// Queues a message and writes what the socket takes. The payload must not change before everything was written.
  void send(Message message);

  /// Writes what the socket takes. Throws ConnectionError if the peer has gone.
  void flush();
  bool has_output() const { return !output_.empty(); }
  std::size_t queued_bytes() const { return queued_bytes_; }

  /// The next message, once all of it is there; nothing while it is not. Throws ConnectionError at the end of the
  /// stream, and for what no message begins with.
  std::optional<Message> receive();

 private:
  void check_header() const;
  bool read_into(void* memory, std::size_t bytes);
  std::size_t write_front();

  Descriptor socket_;
  MakeRoom make_room_;
  std::size_t most_text_ = kMostText;
  std::deque<Message> output_;
  std::size_t written_ = 0;  // of the first of them
  std::size_t queued_bytes_ = 0;

  Message input_;         // so far
  std::size_t read_ = 0;  // of its present part
  enum class Part { kHeader, kText, kPayload } part_ = Part::kHeader;
};

}  // namespace phalanx::ps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "framework/base/descriptor.h"
#include "framework/ps/protocol/message.h"

namespace phalanx::ps {

/// Sends and receives messages over a connected stream socket without ever blocking. Not thread-safe.
class Channel {
 public:
  /// Provides [payload_bytes] of memory for the payload of a message of which only the header and the text have
  /// arrived. Throws ConnectionError to end the connection.
  using AllocatePayload = std::function<at::Tensor(const Message& begun)>;

  Channel(Descriptor socket, AllocatePayload allocate_payload)
      : socket_(std::move(socket)), allocate_payload_(std::move(allocate_payload)) {}

  int socket() const { return socket_.get(); }

  /// Sets the longest text that a message may have; the default is kMaxText. Receiving a longer text throws
  /// ConnectionError before any memory is allocated for it.
  void limit_text(std::size_t bytes) { max_text_ = bytes; }

  /// Queues a message and writes as much as the socket accepts. The payload must not change until all of it has been
  /// written.
  void send(Message message);

  /// Writes as much as the socket accepts. Throws ConnectionError if the peer has gone.
  void flush();
  bool has_output() const { return !output_.empty(); }
  std::size_t queued_bytes() const { return queued_bytes_; }

  /// Returns the next message if all of it has arrived, otherwise nothing. Throws ConnectionError at the end of the
  /// stream and for data that cannot be the beginning of a message.
  std::optional<Message> receive();

 private:
  void check_header() const;
  bool read_into(void* memory, std::size_t bytes);
  std::size_t write_front();

  Descriptor socket_;
  AllocatePayload allocate_payload_;
  std::size_t max_text_ = kMaxText;
  std::deque<Message> output_;
  std::size_t written_ = 0;  // bytes of the first message in output_
  std::size_t queued_bytes_ = 0;

  Message input_;         // the message being received
  std::size_t read_ = 0;  // bytes of its current part
  enum class Part { kHeader, kText, kPayload } part_ = Part::kHeader;
};

}  // namespace phalanx::ps

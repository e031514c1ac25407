// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/descriptor.h"
#include "framework/base/handshake.h"
#include "framework/comm/store/store_protocol.h"

namespace phalanx {

struct StoreRequest {
  RequestHeader header{};
  std::string key{};
  std::string value{};
};

/// The server's end of one connection. It reads requests only after the peer has proved that it knows the secret; until
/// then, it takes no more memory than the fixed-size greeting needs. No call blocks. Not thread-safe.
///
/// All calls throw an Error with the reason if the connection must end: the peer has closed it, or has sent something
/// that no client sends.
class StoreSession {
 public:
  using Clock = std::chrono::steady_clock;

  /// `secret` must live as long as the session.
  StoreSession(Descriptor socket, const std::string& secret)
      : socket_(std::move(socket)), handshake_(kStoreHandshake, secret) {}

  int socket() const { return socket_.get(); }
  bool admitted() const { return handshake_.admitted(); }
  bool refused() const { return handshake_.refused(); }  // its greeting or its proof was wrong
  Clock::time_point since() const { return since_; }

  /// Returns the next request once all of it has arrived, and answers the greeting that comes before.
  std::optional<StoreRequest> receive();

  /// Queues a reply and writes the bytes that the socket takes.
  void reply(const ReplyHeader& header, std::string_view value = {});

  /// Writes the bytes that the socket takes. While some are left, the server does not read the next request.
  void flush();
  bool has_output() const { return written_ < output_.size(); }

 private:
  enum class Part { kHandshake, kHeader, kBody };

  bool fill(std::size_t bytes);
  bool shake_hands();
  void read_header();
  void send(std::string_view text);

  Descriptor socket_;
  ServerHandshake handshake_;
  Clock::time_point since_ = Clock::now();

  Part part_ = Part::kHandshake;
  std::string input_{};  // the current part, of which received_ bytes have arrived
  std::size_t received_ = 0;
  RequestHeader header_{};
  std::string output_{};
  std::size_t written_ = 0;
};

}  // namespace phalanx

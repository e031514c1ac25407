// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::ps {

/// The longest text that a server accepts from a peer that has not proved that it knows the secret.
inline constexpr std::size_t kMaxGreeting = 4096;

/// Identifies a client. The client sends two messages: the text of the first is its nonce; the text of the second is
/// its proof, followed by the encoded greeting, which the server decodes only if the proof is correct. The text of the
/// first reply is the server's nonce. The second reply has the server's own proof as text, version = 1 if the server
/// can access the client's memory, and clock = the random number of this start of the server.
///
/// If `chain` is not empty, the connection is about one part of the tables, which several servers hold (replica.h). A
/// server refuses a client's second message if it does not lead the chain, or if it is asked to take over and has no
/// copy.
struct Greeting {
  std::string job{};           // namespace of the tables
  std::int64_t client = 0;     // number of the client in the job
  std::string incarnation{};   // random number of this start of the client
  std::int64_t memory = 0;     // address of `memory_check` in the client's memory; 0: access is not offered
  std::string memory_check{};  // 64 characters that are stored at `memory`

  std::vector<std::string> chain{};  // addresses of each server that holds the part, separated by commas
  std::int64_t member = 0;           // index of the server in `chain`; at least 0
  bool take_over = false;            // the leader is lost; the server should lead
  bool replica = false;              // the sender is not a client but member `client` of the chain, which leads it
  double failover = 0;               // seconds until clients ask another member to take over; at least 0
};

/// Encodes the greeting as text. Throws Error if the message would be longer than kMaxGreeting.
std::string encode(const Greeting& greeting);

/// Decodes a greeting in linear time. Throws ConnectionError for a malformed text.
Greeting decode_greeting(std::string_view text);

}  // namespace phalanx::ps

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx::ps {

/// The longest text that a server takes from a peer that has not proved that it knows the secret.
inline constexpr std::size_t kMostGreeting = 4096;

/// Says who a client is. The client sends two messages: the text of the first is its nonce; the text of the second is
/// its proof, followed by the encoded greeting, which the server reads only if the proof is right. The text of the
/// first reply is the server's nonce. The second reply has the server's own proof as text, version = 1 if the server
/// reaches the client's memory, and clock = the random number of this start of the server.
///
/// With a chain, it is about one part of the tables that several servers hold (replica.h). A server that does not lead
/// the chain refuses the second message of a client, and so does one that is asked to take over and has no copy.
struct Greeting {
  std::string job{};           // namespace of the tables
  std::int64_t client = 0;     // number in the job
  std::string incarnation{};   // random number of this start of the client
  std::int64_t memory = 0;     // address of `memory_check` in the client's memory; 0: it does not offer that
  std::string memory_check{};  // 64 characters that are there

  std::vector<std::string> chain{};  // of each server that holds the part its addresses, separated by commas
  std::int64_t member = 0;           // which of them the server is; at least 0
  bool take_over = false;            // its leader is lost: lead
  bool replica = false;              // not from a client but from member `client` of the chain, which leads it
  double failover = 0;               // seconds after which clients ask another member to take over; at least 0
};

/// The greeting as text. Throws Error if the message would be longer than kMostGreeting.
std::string encode(const Greeting& greeting);

/// The inverse, in linear time. Throws ConnectionError for any other text.
Greeting decode_greeting(std::string_view text);

}  // namespace phalanx::ps

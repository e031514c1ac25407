// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/handshake.h"

namespace phalanx {

/// The messages between the launcher and a host that joins a running job (train --join), before they exchange orders
/// and beats like a launcher and an agent. The host says what it has in the greeting by which both prove that they know
/// the secret; the launcher answers with one text. Both are JSON.

/// The host's description of itself.
struct JoinRequest {
  std::string host{};
  int ranks = 1;                                  // for which it has room
  std::map<std::string, std::string> versions{};  // of Phalanx and of the libraries that ranks communicate with
};

/// Returns the request of this host.
JoinRequest own_join_request(int ranks);

/// The launcher's answer.
struct JoinAnswer {
  std::string refusal{};               // why the host cannot join; empty: it joins, with the rest
  std::string folder{};                // the current folder of the launcher
  std::vector<std::string> command{};  // starts an agent there
  std::string variables{};             // of the agent: NAME=VALUE, a line each
  std::string token_file{};            // a file in the run folder, whose text is `token`
  std::string token{};
  bool secret_is_of_job = true;  // false: the job has no secret, and the launcher has drawn one for joining
};

/// The handshake of the port at which hosts join. Its claim is a request.
HandshakeProtocol join_protocol();

/// Returns a request as a claim of join_protocol(). Throws ConfigError if it does not fit.
std::string to_claim(const JoinRequest& request);

/// Reads a claim. Throws DataError for anything else.
JoinRequest parse_join_request(std::string_view claim);

/// Returns an answer with its length in front, in kLengthDigits digits. Throws Error if it is longer than kMostAnswer.
std::string to_text(const JoinAnswer& answer);
inline constexpr std::size_t kLengthDigits = 8;
inline constexpr std::size_t kMostAnswer = 1 << 20;

/// Returns the length of the rest of an answer, from its first kLengthDigits bytes. Throws DataError for anything else.
std::size_t length_of_answer(std::string_view digits);

/// Reads the rest of an answer. Throws DataError for anything else.
JoinAnswer parse_join_answer(std::string_view text);

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/join_protocol.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/json.h"
#include "framework/base/text.h"
#include "launch/rank/same_start.h"

namespace phalanx {
namespace {

using nlohmann::json;

constexpr std::size_t kClaimBytes = 1024;
constexpr int kMostRanksOfHost = 4096;

std::string dumped(const json& fields) { return fields.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

HandshakeProtocol join_protocol() {
  return {.client_opening = "phalanx join 1?",
          .server_opening = "phalanx join 1!",
          .identity = "phalanx join 1",
          .claim_bytes = kClaimBytes};
}

JoinRequest own_join_request(int ranks) {
  return {.host = host_name(), .ranks = ranks, .versions = program_versions()};
}

std::string to_claim(const JoinRequest& request) {
  std::string claim = dumped({{"host", request.host}, {"ranks", request.ranks}, {"versions", request.versions}});
  if (claim.size() > kClaimBytes) throw ConfigError("the name of this host is too long: " + request.host);
  claim.resize(kClaimBytes, ' ');
  return claim;
}

JoinRequest parse_join_request(std::string_view claim) {
  const JsonValue fields = parse_json(claim, "the request to join");
  JoinRequest request{.host = fields.get<std::string>("host"),
                      .ranks = fields.get<int>("ranks"),
                      .versions = fields.get<std::map<std::string, std::string>>("versions")};
  if (request.ranks < 1 || request.ranks > kMostRanksOfHost) fields.at("ranks").refuse("is not between 1 and 4096");
  return request;
}

std::string to_text(const JoinAnswer& answer) {
  const std::string text = dumped({{"refusal", answer.refusal},
                                   {"folder", answer.folder},
                                   {"command", answer.command},
                                   {"variables", answer.variables},
                                   {"token_file", answer.token_file},
                                   {"token", answer.token},
                                   {"secret_is_of_job", answer.secret_is_of_job}});
  if (text.size() > kMostAnswer) throw Error("the command line and the variables of the job are too long to send");
  return format_text("%08zu", text.size()) + text;
}

std::size_t length_of_answer(std::string_view digits) {
  std::size_t length = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  const bool number = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  if (!number || digits.size() != kLengthDigits || length > kMostAnswer) {
    throw DataError("the launcher's answer does not begin with its length");
  }
  return length;
}

JoinAnswer parse_join_answer(std::string_view text) {
  const JsonValue fields = parse_json(text, "the launcher's answer");
  return {.refusal = fields.get<std::string>("refusal"),
          .folder = fields.get<std::string>("folder"),
          .command = fields.get<std::vector<std::string>>("command"),
          .variables = fields.get<std::string>("variables"),
          .token_file = fields.get<std::string>("token_file"),
          .token = fields.get<std::string>("token"),
          .secret_is_of_job = fields.get<bool>("secret_is_of_job")};
}

}  // namespace phalanx

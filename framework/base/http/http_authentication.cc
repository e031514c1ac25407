// SPDX-License-Identifier: Apache-2.0
#include "framework/base/http/http_authentication.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"

namespace phalanx {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

[[noreturn]] void refuse_challenge() {
  throw Error("the server asks for another authentication than Digest with SHA-256");
}

// Parses NAME=VALUE and NAME="VALUE", separated by commas.
std::map<std::string, std::string> parse_challenge(std::string_view text) {
  std::map<std::string, std::string> fields;
  const auto skip = [&](std::string_view marks) {
    text.remove_prefix(std::min(text.find_first_not_of(marks), text.size()));
  };
  for (skip(" ,"); !text.empty(); skip(" ,")) {
    const auto equals = text.find('=');
    if (equals == text.npos) refuse_challenge();
    const std::string name = lower(text.substr(0, equals));
    text.remove_prefix(equals + 1);
    const bool quoted = text.starts_with('"');
    if (quoted) text.remove_prefix(1);
    const auto end = quoted ? text.find('"') : std::min(text.find(','), text.size());
    if (end == text.npos) refuse_challenge();
    fields.emplace(name, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return fields;
}

}  // namespace

std::string http_token(const std::string& secret) { return keyed_hash(secret, {"http"}); }

std::string digest_answer(std::string_view challenge, std::string_view method, std::string_view path,
                          std::string_view secret, std::string_view client_nonce) {
  constexpr std::string_view kScheme = "digest ", kCount = "00000001";
  if (lower(challenge.substr(0, kScheme.size())) != kScheme) refuse_challenge();
  auto fields = parse_challenge(challenge.substr(kScheme.size()));
  const std::string realm = fields["realm"], nonce = fields["nonce"];
  if (lower(fields["algorithm"]) != "sha-256" || fields["qop"].find("auth") == std::string::npos || nonce.empty()) {
    refuse_challenge();
  }
  const auto joined = [](std::initializer_list<std::string_view> parts) {
    std::string text;
    for (const auto part : parts) text.append(text.empty() ? "" : ":").append(part);
    return text;
  };
  const std::string response = sha256(joined({sha256(joined({kHttpUser, realm, secret})), nonce, kCount, client_nonce,
                                              "auth", sha256(joined({method, path}))}));
  std::string answer = "Digest ";
  const auto add = [&](std::string_view name, std::string_view value, std::string_view quote) {
    answer.append(answer.ends_with(' ') ? "" : ", ").append(name).append("=").append(quote).append(value).append(quote);
  };
  add("username", kHttpUser, "\"");
  add("realm", realm, "\"");
  add("nonce", nonce, "\"");
  add("uri", path, "\"");
  add("response", response, "\"");
  add("algorithm", "SHA-256", "");
  add("qop", "auth", "");
  add("nc", kCount, "");
  add("cnonce", client_nonce, "\"");
  if (const auto opaque = fields.find("opaque"); opaque != fields.end()) add("opaque", opaque->second, "\"");
  return answer;
}

}  // namespace phalanx

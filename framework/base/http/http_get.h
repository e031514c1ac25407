// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx {

/// The address of a page: "http://HOST[:PORT][/PATH]".
struct HttpAddress {
  std::string host;  // without the brackets of an IPv6 address
  int port = 80;
  std::string path = "/";
};

/// Parses an address. Throws ConfigError: "ADDRESS: expected http://HOST:PORT/PATH".
HttpAddress parse_http_address(std::string_view text);

/// Returns the body of the page. The server must answer with status 200 within `timeout_seconds`, with at most
/// kMaxBody bytes. If it asks for it, this client proves that it knows `secret` (http_authentication.h). Throws an
/// Error with the address and the reason.
std::string http_get(const HttpAddress& address, double timeout_seconds, const std::optional<std::string>& secret = {});
inline constexpr std::size_t kMaxBody = std::size_t{16} << 20;

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "framework/base/error.h"

namespace phalanx {

/// Thrown if a server does not provide a file: it cannot be reached, refuses, or stops sending.
class HttpError : public Error {
 public:
  using Error::Error;
};

/// Reads the bytes of a file from `offset` on with libcurl: HTTP over IPv4 or IPv6, over TLS if `url` begins with
/// https, and through the proxy that http_proxy, https_proxy and no_proxy name. Certificates must be valid and issued
/// by an authority that curl knows or that SSL_CERT_FILE or SSL_CERT_DIR contains. Follows up to 10 redirections, but
/// none from https to http. Gives up after `timeout` seconds (whole, at least one) without data.
///
/// Calls `start` with the position of the first byte, which is `offset`, or 0 if the server does not support ranges,
/// and with the size of the whole file; then calls `take` with the bytes. An exception from either ends the transfer.
/// Throws an HttpError that names the URL; all bytes that `take` has received until then are valid.
void http_get(const std::string& url, std::int64_t offset, double timeout,
              const std::function<void(std::int64_t begin, std::int64_t size)>& start,
              const std::function<void(std::span<const char>)>& take);

}  // namespace phalanx

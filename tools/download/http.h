// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "framework/base/error.h"

namespace phalanx {

/// A server that does not give a file: it cannot be reached, says no, or goes silent.
class HttpError : public Error {
 public:
  using Error::Error;
};

/// Reads the bytes of a file from `offset` on by libcurl: HTTP over IPv4 or IPv6, over TLS where `url` begins with
/// https, through the proxy that http_proxy, https_proxy and no_proxy name. Certificates must be valid, of an authority
/// that curl knows or that SSL_CERT_FILE or SSL_CERT_DIR has. Follows up to 10 redirections, but none from https to
/// http. Gives up after `timeout` seconds (whole, at least one) in which nothing comes.
///
/// `start` is told where the bytes begin, at `offset`, or at 0 where the server cannot begin elsewhere, and how many
/// the whole file has; then `take` gets them. What these throw ends it. Throws HttpError that names the URL; what
/// `take` has been given until then is good.
void http_get(const std::string& url, std::int64_t offset, double timeout,
              const std::function<void(std::int64_t begin, std::int64_t size)>& start,
              const std::function<void(std::span<const char>)>& take);

}  // namespace phalanx

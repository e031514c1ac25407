// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

/// Clients of an HttpServer prove that they know a secret by Digest authentication (RFC 7616) with SHA-256, in which
/// client and server each contribute a nonce, and each proof is good for one request. Browsers ask their user for
/// the name kHttpUser and the secret. Prometheus does not know Digest: it sends a token that follows from the secret.
namespace phalanx {

inline const std::string kHttpUser = "phalanx";

/// Returns the token, which does not reveal the secret: printf 4:http | openssl dgst -sha256 -hmac SECRET. Whoever
/// overhears it can use it, too.
std::string http_token(const std::string& secret);

/// Returns the value of the header Authorization by which a client answers `challenge`, the value of the server's
/// header WWW-Authenticate. `client_nonce` is a random text. Throws Error if the challenge is not one for Digest with
/// SHA-256.
std::string digest_answer(std::string_view challenge, std::string_view method, std::string_view path,
                          std::string_view secret, std::string_view client_nonce);

}  // namespace phalanx

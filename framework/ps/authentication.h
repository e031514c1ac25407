#pragma once

#include <string>

/// How the two ends of a connection prove to each other that they know the secret of a job, which never travels itself.
///
/// Each end sends a nonce; then each sends the keyed hash (HMAC-SHA-256, RFC 2104) of both nonces, its own role and who
/// the client says it is. Nonces are new for each connection, so that a recorded proof is of no use later. What follows
/// is neither encrypted nor signed: the network has to be trusted to deliver it, as it is for MPI and Gloo.
namespace phalanx::ps {

/// 32 random bytes of the operating system, in hexadecimal digits.
std::string random_text();

enum class Role { kClient, kServer };

/// In hexadecimal digits. `identity`: what the client says of itself.
std::string proof(const std::string& secret, Role role, const std::string& client_nonce,
                  const std::string& server_nonce, const std::string& identity);

/// In a time that does not depend on where they differ.
bool equal_proofs(const std::string& a, const std::string& b);

}  // namespace phalanx::ps

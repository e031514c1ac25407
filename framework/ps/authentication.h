#pragma once

#include <string>

#include "framework/base/keyed_hash.h"

/// How the two ends of a connection prove to each other that they know the secret of a job, which never travels itself.
///
/// Each end sends a nonce; then each sends the keyed hash of both nonces, its own role and who the client says it is.
/// The server reads who the client says it is after it has found the hash right. Nonces are new for each connection, so
/// that a recorded proof is of no use later. What follows is neither encrypted nor signed: the network has to be
/// trusted to deliver it, as it is for MPI and Gloo.
namespace phalanx::ps {

enum class Role { kClient, kServer };

/// In hexadecimal digits. `identity`: what the client says of itself.
std::string proof(const std::string& secret, Role role, const std::string& client_nonce,
                  const std::string& server_nonce, const std::string& identity);

}  // namespace phalanx::ps

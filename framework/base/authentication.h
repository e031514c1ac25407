// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

/// Proofs by which the two ends of a connection show each other that they know the secret of a job. The secret itself
/// is never sent.
///
/// Each end sends a nonce (random_text()); then each sends its proof, a keyed hash of its role, both nonces and the
/// client's identity. The server parses nothing else that a client sends until it has verified the client's proof.
/// Nonces are new for each connection, so that a recorded proof is useless later. The data that follow are neither
/// encrypted nor signed: the network must be trusted to deliver them, as it is for MPI and Gloo.
namespace phalanx {

enum class Role { kClient, kServer };

/// The length of a proof, and of a nonce.
inline constexpr std::size_t kProofBytes = 64;

/// Returns the proof of one end, in hexadecimal digits. `identity` says who the client is and for which protocol, so
/// that a proof for one protocol is worthless in another.
std::string proof(const std::string& secret, Role role, const std::string& client_nonce,
                  const std::string& server_nonce, const std::string& identity);

}  // namespace phalanx

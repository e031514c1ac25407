// SPDX-License-Identifier: Apache-2.0
#include "framework/base/handshake.h"

#include <algorithm>

#include "framework/base/error.h"

namespace phalanx {

std::size_t ServerHandshake::next_bytes() const {
  if (part_ == Part::kHello) return protocol_->client_hello_bytes();
  return part_ == Part::kProof ? kProofBytes : 0;
}

bool ServerHandshake::fits(std::string_view beginning) {
  if (part_ != Part::kHello) return true;
  const std::string_view opening = protocol_->client_opening;
  if (opening.starts_with(beginning.substr(0, std::min(beginning.size(), opening.size())))) return true;
  part_ = Part::kRefused;
  return false;
}

std::string ServerHandshake::answer(std::string_view message) {
  if (part_ == Part::kHello) {
    const std::size_t opening = protocol_->client_opening.size();
    client_nonce_ = message.substr(opening, kProofBytes);
    claim_ = message.substr(opening + kProofBytes);
    part_ = Part::kProof;
    return protocol_->server_opening + nonce_;
  }
  const std::string identity = protocol_->identity + claim_;
  const bool good = equal_hashes(message, proof(*secret_, Role::kClient, client_nonce_, nonce_, identity));
  part_ = good ? Part::kAdmitted : Part::kRefused;
  return good ? proof(*secret_, Role::kServer, client_nonce_, nonce_, identity) : kRefusal;
}

HandshakeResult greet(TimedStream& stream, const HandshakeProtocol& protocol, const std::string& secret,
                      const std::string& claim, TimedStream::Deadline deadline) {
  const std::string own = random_text(), identity = protocol.identity + claim;
  stream.send(protocol.client_opening + own + claim, deadline);
  const std::string hello = stream.receive(protocol.server_hello_bytes(), deadline);
  if (!hello.starts_with(protocol.server_opening)) {
    throw CommError(CommError::Kind::kPeerLost, "it speaks another protocol");
  }
  const std::string nonce = hello.substr(protocol.server_opening.size());
  stream.send(proof(secret, Role::kClient, own, nonce, identity), deadline);
  const std::string verdict = stream.receive(kProofBytes, deadline);
  if (verdict == kRefusal) return HandshakeResult::kRefused;
  const bool good = equal_hashes(verdict, proof(secret, Role::kServer, own, nonce, identity));
  return good ? HandshakeResult::kAdmitted : HandshakeResult::kImpostor;
}

}  // namespace phalanx

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

std::size_t ClientHandshake::next_bytes() const {
  if (nonce_.empty()) return protocol_->server_hello_bytes();
  return result_ ? 0 : kProofBytes;
}

std::string ClientHandshake::answer(std::string_view message) {
  const std::string identity = protocol_->identity + claim_;
  if (nonce_.empty()) {
    if (!message.starts_with(protocol_->server_opening)) {
      throw CommError(CommError::Kind::kPeerLost, "it speaks another protocol");
    }
    nonce_ = message.substr(protocol_->server_opening.size());
    return proof(*secret_, Role::kClient, own_, nonce_, identity);
  }
  if (message == kRefusal) {
    result_ = HandshakeResult::kRefused;
  } else {
    const bool good = equal_hashes(message, proof(*secret_, Role::kServer, own_, nonce_, identity));
    result_ = good ? HandshakeResult::kAdmitted : HandshakeResult::kImpostor;
  }
  return "";
}

HandshakeResult greet(TimedStream& stream, const HandshakeProtocol& protocol, const std::string& secret,
                      const std::string& claim, TimedStream::Deadline deadline) {
  ClientHandshake handshake(protocol, secret, claim);
  stream.send(handshake.hello(), deadline);
  while (!handshake.result()) {
    stream.send(handshake.answer(stream.receive(handshake.next_bytes(), deadline)), deadline);
  }
  return *handshake.result();
}

}  // namespace phalanx

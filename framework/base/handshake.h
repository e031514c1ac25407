// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/authentication.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/timed_stream.h"

/// The messages with which a connection begins. Each has a fixed size:
///
///     client   client_opening, its nonce and its claim
///     server   server_opening and its nonce
///     client   its proof (authentication.h)
///     server   its proof, or kRefusal, after which it closes the connection
///
/// The server allocates nothing for a client but these messages, and looks at nothing else that the client sends, until
/// the client has proved that it knows the secret.
namespace phalanx {

struct HandshakeProtocol {
  /// Two texts of the same length. They differ so that a client that is connected to itself by chance does not accept
  /// its own text as an answer.
  std::string client_opening, server_opening;

  /// The protocol that follows. It is part of the proofs, so that a proof for one protocol is worthless in another.
  std::string identity;

  /// The length of the text by which a client says who it is. The text is part of the proofs, too.
  std::size_t claim_bytes = 0;

  std::size_t client_hello_bytes() const { return client_opening.size() + kProofBytes + claim_bytes; }
  std::size_t server_hello_bytes() const { return server_opening.size() + kProofBytes; }
};

/// Says that the client's proof is wrong. No proof looks like it, since a proof has digits only.
inline const std::string kRefusal(kProofBytes, '-');

/// The server's part of one handshake. It knows no sockets. Not thread-safe.
class ServerHandshake {
 public:
  /// `protocol` and `secret` must outlive the object.
  ServerHandshake(const HandshakeProtocol& protocol, const std::string& secret)
      : protocol_(&protocol), secret_(&secret) {}

  /// Returns the length of the client's next message, or 0 after the last one.
  std::size_t next_bytes() const;

  /// Checks the beginning of the client's next message, so that a peer that speaks another protocol is noticed at its
  /// first bytes. Returns false, and refuses it, if no client begins like that.
  bool fits(std::string_view beginning);

  /// Takes the client's next message, of next_bytes() bytes, and returns the answer. Afterwards, the client may be
  /// admitted() or refused().
  std::string answer(std::string_view message);

  bool admitted() const { return part_ == Part::kAdmitted; }
  bool refused() const { return part_ == Part::kRefused; }

  /// Returns what the client says about itself. Must only be trusted if the client is admitted.
  const std::string& claim() const { return claim_; }

 private:
  enum class Part { kHello, kProof, kAdmitted, kRefused };

  const HandshakeProtocol* protocol_;
  const std::string* secret_;
  Part part_ = Part::kHello;
  std::string nonce_ = random_text(), client_nonce_{}, claim_{};
};

/// The outcome of a handshake for the client.
enum class HandshakeResult {
  kAdmitted,
  kRefused,  // the server has another secret than this client
  kImpostor  // the server does not know the secret
};

/// The client's part of one handshake. It knows no sockets. Not thread-safe.
class ClientHandshake {
 public:
  /// `protocol` and `secret` must outlive the object. The claim has `protocol.claim_bytes` bytes.
  ClientHandshake(const HandshakeProtocol& protocol, const std::string& secret, std::string claim)
      : protocol_(&protocol), secret_(&secret), claim_(std::move(claim)) {}

  /// Returns the client's first message.
  std::string hello() const { return protocol_->client_opening + own_ + claim_; }

  /// Returns the length of the server's next message, or 0 after the last one.
  std::size_t next_bytes() const;

  /// Takes the server's next message, of next_bytes() bytes, and returns the answer, which may be empty. Throws a
  /// CommError::kPeerLost if the server speaks another protocol.
  std::string answer(std::string_view message);

  /// Returns the outcome once there is no next message.
  const std::optional<HandshakeResult>& result() const { return result_; }

 private:
  const HandshakeProtocol* protocol_;
  const std::string* secret_;
  std::string claim_, own_ = random_text(), nonce_{};
  std::optional<HandshakeResult> result_{};
};

/// Performs the client's part over a new connection. The claim has `protocol.claim_bytes` bytes. Throws what
/// TimedStream throws, and a CommError::kPeerLost if the server speaks another protocol; another attempt may succeed.
HandshakeResult greet(TimedStream& stream, const HandshakeProtocol& protocol, const std::string& secret,
                      const std::string& claim, TimedStream::Deadline deadline);

}  // namespace phalanx

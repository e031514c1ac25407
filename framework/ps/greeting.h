#pragma once

#include <cstdint>
#include <string>

#include "framework/base/config/visitor.h"

namespace phalanx::ps {

/// What a client says first, in two messages: who it is, and once the server's nonce is there (the text of the first
/// reply) its proof. The reply to that has the server's own proof as text, version = 1 where the server reaches the
/// client's memory, and clock = the random number of this start of the server.
struct Greeting {
  std::string job{};
  std::int64_t client = 0;
  std::string incarnation{};
  std::string nonce{};
  std::string proof{};         // empty in the first message
  std::int64_t memory = 0;     // address of `memory_check` in the client's memory; 0: it does not offer that
  std::string memory_check{};  // 64 characters that are there

  template <class V>
  void visit(V& v) {
    v("job", job, "namespace of the tables");
    v("client", client, "number in the job");
    v("incarnation", incarnation, "random number of this start of the client");
    v("nonce", nonce, "random number of this connection");
    v("proof", proof, "that the client knows the secret");
    v("memory", memory, "address of memory_check in the client's memory");
    v("memory_check", memory_check, "64 characters that are there");
  }

  /// What the proof is about.
  std::string identity() const { return job + "\n" + std::to_string(client) + "\n" + incarnation; }
};

}  // namespace phalanx::ps

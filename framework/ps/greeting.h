#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"

namespace phalanx::ps {

/// What a client says first, in two messages: who it is, and once the server's nonce is there (the text of the first
/// reply) its proof. The reply to that has the server's own proof as text, version = 1 where the server reaches the
/// client's memory, and clock = the random number of this start of the server.
///
/// With a chain, it is about one part of the tables that several servers hold (replica.h). A server that does not lead
/// the chain refuses the second message of a client, and so does one that is asked to take over and has no copy.
struct Greeting {
  std::string job{};
  std::int64_t client = 0;
  std::string incarnation{};
  std::string nonce{};
  std::string proof{};         // empty in the first message
  std::int64_t memory = 0;     // address of `memory_check` in the client's memory; 0: it does not offer that
  std::string memory_check{};  // 64 characters that are there

  std::vector<std::string> chain{};  // of each server that holds the part its addresses, separated by commas
  std::int64_t member = 0;           // which of them the server is
  bool take_over = false;            // its leader is lost: lead
  bool replica = false;              // not from a client but from member `client` of the chain, which leads it
  double failover = 0;               // seconds after which clients ask another member to take over

  template <class V>
  void visit(V& v) {
    v("job", job, "namespace of the tables");
    v("client", client, "number in the job");
    v("incarnation", incarnation, "random number of this start of the client");
    v("nonce", nonce, "random number of this connection");
    v("proof", proof, "that the client knows the secret");
    v("memory", memory, "address of memory_check in the client's memory");
    v("memory_check", memory_check, "64 characters that are there");
    v("chain", chain, "servers that hold the part, of each its addresses, separated by commas");
    v("member", member, "which of them the server is", config::at_least(0));
    v("take_over", take_over, "whether it is to lead, since the one that did is lost");
    v("replica", replica, "whether another server of the chain says this");
    v("failover", failover, "seconds after which clients ask another server of the chain to lead", config::at_least(0));
  }

  /// What the proof is about.
  std::string identity() const { return job + "\n" + std::to_string(client) + "\n" + incarnation; }
};

}  // namespace phalanx::ps

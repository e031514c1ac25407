// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>

#include "framework/base/descriptor.h"

namespace phalanx {

/// Limits that keep the memory and open files of a StoreServer bounded, no matter who connects.
struct StoreLimits {
  std::chrono::duration<double> greeting{10};  // time within which a connection must prove that it knows the secret
  std::size_t pending_handshakes =
      256;  // connections without such proof; a silent one makes room for a newcomer after a second
  std::size_t connections = 20'000;  // connections of both kinds; more wait to be accepted
};

/// The store of a job that has a secret: a thread that keeps values by key, and serves only peers which prove that they
/// know the secret (store_protocol.h). Values are kept in memory until the server ends, and travel unencrypted.
///
/// Unauthenticated peers that send anything else, or nothing, are disconnected and cannot keep ranks from connecting.
/// They are logged, at a limited rate. If connections cannot be accepted for lack of open files or memory, the server
/// retries every second. If its thread fails for another reason, it logs why and closes everything, so that ranks lose
/// their connection instead of waiting.
class StoreServer {
 public:
  /// Starts the thread, which accepts connections at the listening socket. `name` is the name of the store in the log;
  /// the secret has at least kMinSecretBytes bytes. Throws CommError::kSystem if the system refuses.
  StoreServer(std::string name, Descriptor listener, std::string secret, const StoreLimits& limits = {});

  /// Ends the thread, and closes the listening socket and all connections.
  ~StoreServer();

 private:
  class Loop;

  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace phalanx

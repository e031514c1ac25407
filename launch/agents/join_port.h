// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "framework/base/authenticating_listener.h"
#include "framework/base/descriptor.h"
#include "launch/agents/join_protocol.h"

namespace phalanx {

/// The port at which hosts join a running job (train --join). It is open as long as this object exists, as are two
/// files of the run folder: join.address, and join.secret if the job has no secret. Not thread-safe.
class JoinPort {
 public:
  struct Options {
    std::string run_folder{};
    std::string interface{};              // framework.interface
    std::optional<std::string> secret{};  // of the job (job_secret()); absent: one is drawn
  };

  /// A host that has proved that it knows the secret.
  struct Peer {
    Descriptor socket;
    JoinRequest request;
  };

  /// Throws ConfigError if this host has no address at the interface, and Error if it cannot listen or write the files.
  explicit JoinPort(const Options& options);
  ~JoinPort();
  JoinPort(const JoinPort&) = delete;
  JoinPort& operator=(const JoinPort&) = delete;

  const std::string& address() const { return address_; }

  /// Returns a line that says how to join.
  std::string invitation() const;

  /// Goes on with all connections, and returns the next host that has been admitted, or nothing if there is none yet.
  /// Does not block. To be called every 50 ms or so. Throws CommError::kSystem if the port fails.
  std::optional<Peer> admit();

 private:
  std::string address_file_, secret_file_;  // empty: this file does not exist
  std::string address_;
  std::optional<AuthenticatingListener> listener_;
};

}  // namespace phalanx

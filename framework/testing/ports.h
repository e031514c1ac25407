// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::testing {

/// Returns an unused TCP port. It lies below the ports that the system assigns itself, so no new connection gets it.
int free_port();

/// Reserves a port without listening on it, so that connections to it fail as long as this object exists.
class SilentPort {
 public:
  SilentPort();
  ~SilentPort();
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  int port() const { return port_; }

 private:
  int socket_;
  int port_ = 0;
};

}  // namespace phalanx::testing

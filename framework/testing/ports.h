// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::testing {

/// A TCP port that nobody uses now. It lies below those that the system hands out by itself, so that no connection that
/// is opened meanwhile gets it.
int free_port();

/// A port on which nobody answers as long as this object lives: taken, but not listened on.
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

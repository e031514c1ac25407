// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "framework/comm/store/store.h"
#include "framework/ps/server_lost.h"

namespace phalanx::ps {

/// Options of a client's link to the server that leads one part of the tables.
struct LinkOptions {
  std::vector<std::vector<std::string>> members{};  // servers that hold the part; addresses of each, best first
  std::string job{};
  int number = 0;
  std::string secret{};
  Seconds timeout{60};
  Seconds retry{0};      // time limit for re-establishing a broken connection; 0: do not try
  Seconds failover{0};   // time until another member is asked to lead if the leader cannot be reached
  std::size_t part = 0;  // number of this part of the tables
  bool checksums = false;
  bool leaves = true;     // tell the server in the destructor that the client leaves
  bool come_back = true;  // a server that has ended may be started again at the same address

  bool replicated() const { return members.size() > 1; }
  bool reconnects() const { return retry > Seconds(0); }

  /// Returns the error of requests that wait for a lost server: a ServerLost if the link reconnects.
  std::exception_ptr lost(const std::string& message) const {
    if (reconnects()) return std::make_exception_ptr(ServerLost(message));
    return std::make_exception_ptr(CommError(CommError::Kind::kPeerLost, message));
  }
};

}  // namespace phalanx::ps

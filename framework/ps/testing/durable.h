// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/ps/client/client.h"
#include "framework/ps/server/server.h"
#include "framework/ps/testing/service.h"

// Servers that keep their state, and clients that come back to them.
namespace phalanx::ps::testing {

/// Returns the options of a client that looks for its server again for `retry` seconds.
inline ClientOptions retrying(const std::string& address, int number = 0, Seconds retry = Seconds(20)) {
  return {.servers = {{address}}, .number = number, .secret = kSecret, .timeout = Seconds(20), .retry = retry};
}

/// Returns the options of a server that writes a checkpoint to `folder` every `every` seconds, and at its end.
inline ServerOptions durable(const std::string& folder, const std::string& address, Seconds every = Seconds(1000)) {
  return {
      .listen = {address}, .secret = kSecret, .grace = Seconds(20), .checkpoint = {.folder = folder, .every = every}};
}

}  // namespace phalanx::ps::testing

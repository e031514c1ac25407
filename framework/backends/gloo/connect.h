// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/backends/gloo/transport.h"
#include "framework/comm/store/store.h"

namespace phalanx::gloo {

/// This rank's place in a group that is to be connected.
struct Member {
  std::string group;  // name of the group, for messages
  int rank = 0;
  int size = 1;
  Seconds timeout{600};
  Endpoint endpoint{};
  std::string address{};  // OwnAddress::describe() of this rank, for messages

  /// The place of a group that is shrunk from another one; empty for a new group, which gets its own.
  Standing standing{};

  /// The ranks in the job of the ranks of a new group; empty: it has all ranks of the job.
  std::vector<int> numbers{};

  /// Is called every few milliseconds while this rank waits for others to connect, and may throw to end that; then it
  /// throws whenever it is called.
  std::function<void()> check{};

  /// Does the same, and all later waits of the group call it, too (ConnectOptions::check).
  std::function<void()> lasting_check{};
};

/// A function by which the ranks of a new group tell each other a short text. It returns the texts of all ranks.
using Exchange = std::function<std::vector<std::string>(const std::string& own)>;

/// Connects every rank to every other rank. A rank listens at one port of its endpoint, where all ranks after it
/// connect to it; `exchange` tells them the address. A new group keeps this socket for its Control. A group that is
/// shrunk from another one closes it, since it has the Control of that one, with a socket of its own. The two ends of
/// each connection prove to each other that they know the endpoints' secret, and which ranks of which group and view
/// they are, before Gloo gets it (framework/base/handshake.h). Strangers are disconnected.
///
/// Collective. Throws ConfigError if this rank cannot listen, and a CommError that names the rank that cannot be
/// reached (kPeerLost), that did not connect in time (kTimeout), or that has another secret (kSystem; kPeerLost in a
/// group that is shrunk from another one, whose ranks have the same secret unless one of them has left its port).
std::shared_ptr<Transport> connect(const Member& member, std::shared_ptr<::gloo::transport::tcp::Device> device,
                                   const Exchange& exchange);

/// Returns an Exchange that uses a store that all ranks can reach. It throws CommError::kTimeout, which names a rank
/// that left no text.
Exchange exchange_through(Store& store, const Member& member);

}  // namespace phalanx::gloo

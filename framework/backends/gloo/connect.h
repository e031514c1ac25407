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
  std::string address{};  // OwnAddress::describe() of this rank, for messages
};

/// A function that exchanges notes between the ranks of a new group. It takes one note for each rank and returns the
/// notes that the other ranks have for this one. The note of a rank to itself is ignored.
using Exchange = std::function<std::vector<std::string>(const std::vector<std::string>& notes)>;

/// Connects every rank to every other rank. Each rank listens once for each peer, and sends the address to the peer by
/// `exchange`. Collective. Throws a CommError that names the rank that cannot be reached (kPeerLost) or that did not
/// connect in time (kTimeout).
std::shared_ptr<Transport> connect(const Member& member, std::shared_ptr<::gloo::transport::tcp::Device> device,
                                   const Exchange& exchange);

/// Returns an Exchange that uses a store that all ranks can reach. It throws CommError::kTimeout, which names a rank
/// that left no note.
Exchange exchange_through(Store& store, const Member& member);

}  // namespace phalanx::gloo

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/backends/gloo/transport.h"
#include "framework/comm/store.h"

namespace phalanx::gloo {

/// Who connects to whom.
struct Member {
  std::string group;  // for messages
  int rank = 0;
  int size = 1;
  Seconds timeout{600};
};

/// Passes notes between the ranks of a group that is to be: takes one for each rank, and returns those that the ranks
/// have for this one. Nobody has one for himself.
using Exchange = std::function<std::vector<std::string>(const std::vector<std::string>& notes)>;

/// Connects every rank to every other: each listens once for each, and tells where by `exchange`. Collective. Throws
/// CommError that names the rank that cannot be reached (kPeerLost), or did not connect in time (kTimeout).
std::shared_ptr<Transport> connect(const Member& member, std::shared_ptr<::gloo::transport::tcp::Device> device,
                                   const Exchange& exchange);

/// Exchange through a store that all ranks reach. Throws CommError::kTimeout that names a rank that left no note.
Exchange exchange_through(Store& store, const Member& member);

}  // namespace phalanx::gloo

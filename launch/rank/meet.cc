// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/meet.h"

#include <stdlib.h>

#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/address_for_peers.h"
#include "framework/comm/store/broadcast_rendezvous.h"

namespace phalanx {
namespace {

// Returns the way in which this program's backends broadcast a text without a store, or null if there is none.
decltype(BackendTraits::broadcast) find_broadcast() {
  const auto names = Backends::global().names_where(&BackendTraits::broadcast);
  return names.empty() ? nullptr : backend_traits(names.front()).broadcast;
}

}  // namespace

Rendezvous meet(const LaunchEnvironment& launched, const std::string& interface, Seconds timeout) {
  const RankInfo& rank_info = launched.rank_info;
  if (rank_info.size == 1) return {.store = make_hash_store(timeout)};
  if (!launched.rendezvous.empty()) return rendezvous(launched.rendezvous, timeout);
  const auto broadcast = launched.mpi ? find_broadcast() : nullptr;
  if (broadcast == nullptr) {
    throw ConfigError(launched.launcher +
                      " has started ranks on several hosts, but nothing says where they can meet; " +
                      "set MASTER_ADDR (rank 0's host) and MASTER_PORT (a free port there), or give --init_method");
  }
  const auto by_mpi = [&](const std::string& text) { return broadcast(rank_info, text, timeout); };
  return rendezvous_by_broadcast(rank_info, by_mpi, interface, timeout);
}

void use_interface(const std::string& interface) {
  if (interface.empty()) return;
  const std::string name = address_for_peers({.interface = interface}).interface;
  ::setenv("PHALANX_INTERFACE", interface.c_str(), /*overwrite=*/1);
  for (const char* variable : {"OMPI_MCA_btl_tcp_if_include", "FI_TCP_IFACE", "NCCL_SOCKET_IFNAME"}) {
    ::setenv(variable, name.c_str(), /*overwrite=*/0);
  }
}

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/store/store.h"

namespace phalanx {

/// Connects to the StoreServer at host:port and proves that this process knows the job's secret. `name` is the name of
/// the store in errors. Either end may start first: until the server is up, connecting is retried, up to `timeout`.
///
/// The result has one connection, which the threads of this process share. A get() that waits for a key polls, so that
/// other threads can use the connection in between.
///
/// Throws CommError: kTimeout with the address if no such server answers in time, and kSystem at once if the server has
/// another secret or, after the timeout, if the host's name cannot be resolved. The calls of the result throw kPeerLost
/// if the server is lost, and kSystem for keys and values that are too long (store_protocol.h).
StorePtr connect_to_store(const std::string& name, const std::string& host, int port, const std::string& secret,
                          Seconds timeout);

}  // namespace phalanx

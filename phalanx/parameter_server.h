// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "framework/ps/client/client.h"  // IWYU pragma: export
#include "framework/ps/server/server.h"  // IWYU pragma: export
#include "phalanx/world.h"

namespace phalanx {

/// Parameter servers: tables that all ranks read and change without waiting for each other. ps::Server and ps::Client
/// connect any processes, by addresses and a secret. ParameterServers starts both for the ranks of a world.
///
///     phalanx::ParameterServers servers(world);
///     auto& client = servers.client();
///     auto table = client.create({.name = "w", .elements = 1000, .rules = {"{name: add, factor: 0.5}"}});
///     client.push(table, update, {}).wait();
///     client.pull(table, values).wait();
class ParameterServers {
 public:
  struct Options {
    /// Number of servers: the first ranks, each of which serves a part of every table in a separate thread. 0: all
    /// ranks serve.
    int servers = 0;
    std::chrono::milliseconds timeout = std::chrono::minutes(1);  // limit for each request
  };

  /// Starts the servers and connects this rank to all of them. Collective. Throws std::invalid_argument unless there
  /// are as many ranks as servers.
  ParameterServers(World& world, const Options& options);
  explicit ParameterServers(World& world) : ParameterServers(world, Options()) {}

  /// Disconnects this rank. A rank that serves waits until the clients of all ranks have disconnected or ended.
  ~ParameterServers();
  ParameterServers(ParameterServers&&) noexcept;
  ParameterServers& operator=(ParameterServers&&) = delete;

  ps::Client& client() { return *client_; }

 private:
  std::unique_ptr<ps::Server> server_;  // null: this rank is not a server
  std::unique_ptr<ps::Client> client_;
};

}  // namespace phalanx

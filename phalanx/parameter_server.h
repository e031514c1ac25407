// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/ps/client/client.h"  // IWYU pragma: export
#include "framework/ps/server/server.h"  // IWYU pragma: export
#include "phalanx/world.h"

namespace phalanx {

/// Parameter servers: tables that all ranks read and change without waiting for each other. ps::Server and ps::Client
/// connect any processes, by addresses and a secret. ParameterServers starts both for the ranks of a world.
///
///     phalanx::ParameterServers service(world);
///     ps::Table table = service.client().create({.name = "w", .elements = 1000, .rules = {"{name: add, factor:
///     0.5}"}}); service.client().push(table, update, {}).wait(); service.client().pull(table, values).wait();
class ParameterServers {
 public:
  struct Options {
    int servers = 0;  // the first ranks that serve a part of each table, in a thread of their own; 0: all ranks
    std::chrono::milliseconds timeout = std::chrono::minutes(1);  // limit for each request
  };

  /// Starts the servers, and connects this rank to all of them. Collective.
  explicit ParameterServers(World& world, const Options& options);
  explicit ParameterServers(World& world) : ParameterServers(world, Options()) {}

  /// Disconnects this rank. A rank that serves waits up to the timeout until the other ranks have disconnected.
  ~ParameterServers();
  ParameterServers(ParameterServers&&) noexcept;
  ParameterServers& operator=(ParameterServers&&) = delete;

  ps::Client& client() { return *client_; }

 private:
  Options options_;
  std::unique_ptr<ps::Server> server_;
  std::unique_ptr<ps::Client> client_;
};

}  // namespace phalanx

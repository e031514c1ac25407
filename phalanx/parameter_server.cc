// SPDX-License-Identifier: Apache-2.0
#include "phalanx/parameter_server.h"

#include <stdexcept>
#include <utility>

#include "framework/comm/launch/locality.h"
#include "framework/ps/server_list.h"

namespace phalanx {
namespace {

constexpr const char* kTables = "library";  // the namespace of the tables; the servers have no others

}  // namespace

ParameterServers::ParameterServers(World& world, const Options& options) {
  if (options.servers < 0 || options.servers > world.size()) {
    throw std::invalid_argument("ParameterServers: " + std::to_string(options.servers) + " servers on " +
                                std::to_string(world.size()) + " ranks");
  }
  auto started = ps::start_servers(options.servers == 0 || world.rank() < options.servers, world.communicator());
  server_ = std::move(started.own);
  client_ = std::make_unique<ps::Client>(ps::ClientOptions{.servers = started.all.addresses_for(host_key()),
                                                           .job = kTables,
                                                           .number = world.rank(),
                                                           .secret = started.all.secret,
                                                           .timeout = options.timeout});
  world.barrier();  // all ranks must connect before any server ends
}

ParameterServers::ParameterServers(ParameterServers&&) noexcept = default;

ParameterServers::~ParameterServers() {
  client_.reset();
  if (server_) server_->wait_until_left(kTables);
}

}  // namespace phalanx

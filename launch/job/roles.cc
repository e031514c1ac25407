// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/secret_file.h"
#include "framework/comm/locality.h"
#include "framework/ps/client.h"
#include "framework/ps/current_servers.h"
#include "framework/ps/server.h"
#include "framework/ps/server_list.h"
#include "launch/exit_status.h"
#include "launch/job/device.h"
#include "launch/job/rank.h"

namespace phalanx {
namespace {

// The namespace in which training ranks show the servers that they are still present.
constexpr const char* kPresence = "ranks";

int serve(ps::Server& server, int clients, Seconds timeout) {
  log_info() << "this rank is a parameter server of " << clients << " ranks";
  if (!server.wait_for_clients(kPresence, clients, timeout)) {
    throw CommError(CommError::Kind::kTimeout, "parameter server: not all of the " + std::to_string(clients) +
                                                   " ranks that train have connected within " +
                                                   std::to_string(static_cast<int>(timeout.count())) + " s");
  }
  server.wait_until_left(kPresence);
  log_info() << "all ranks that train have left";
  return kDone;
}

// Returns the external servers (tools:ps). They may be restarted, so clients wait for them up to the usual timeout.
// Collective.
std::shared_ptr<ps::CurrentServers> servers_elsewhere(const ExperimentConfig& config, Communicator& world) {
  const auto& roles = config.roles;
  const ps::ServerList list{.servers = {},
                            .secret = read_secret(roles.secret_file),
                            .run = config.name,
                            .retry = Seconds(config.framework.timeout),
                            .replicas = static_cast<int>(roles.replicas),
                            .failover = Seconds(roles.failover)};
  try {
    return std::make_shared<ps::CurrentServers>(
        list.at(roles.servers_file.empty() ? roles.servers_at : ps::read_addresses(roles.servers_file, world)));
  } catch (const DataError& error) {
    throw ConfigError(std::string("roles.servers_file: ") + error.what());
  }
}

int run_on_device(const Job& job, RankContext context) {
  auto placed = choose_devices(job.config, std::move(context.world));
  context.world = std::move(placed.world);
  context.device = placed.device;
  return job.body(context);
}

}  // namespace

int run_in_role(const Job& job, RankContext context) {
  if (job.config.roles.elsewhere()) {
    context.servers = servers_elsewhere(job.config, *context.world);
    return run_on_device(job, std::move(context));
  }
  const auto servers = static_cast<int>(job.config.roles.server);
  if (servers == 0) return run_on_device(job, std::move(context));
  const CommunicatorPtr world = context.world;
  const int training = world->size() - servers;
  if (training < 1) {
    throw ConfigError("roles.server: " + std::to_string(servers) + " of " + std::to_string(world->size()) +
                      " ranks leaves no rank to train");
  }
  const Seconds timeout(job.config.framework.timeout);
  const bool serves = world->rank() >= training;
  auto started = ps::start_servers(serves, *world);
  context.world = world->split(serves ? 1 : 0, world->rank());
  if (serves) return serve(*started.own, training, timeout);
  const ps::Client presence({.servers = started.all.reached_from(host_key()),
                             .job = kPresence,
                             .number = world->rank(),
                             .secret = started.all.secret,
                             .timeout = timeout});
  context.servers = std::make_shared<ps::CurrentServers>(std::move(started.all));
  return run_on_device(job, std::move(context));
}

}  // namespace phalanx

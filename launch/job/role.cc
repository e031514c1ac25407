// SPDX-License-Identifier: Apache-2.0
#include "launch/job/role.h"

#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/secret_file.h"
#include "framework/comm/launch/locality.h"
#include "framework/ps/server_list.h"
#include "launch/exit_status.h"

namespace phalanx {
namespace {

// The namespace in which training ranks show the servers that they are still present.
constexpr const char* kPresence = "ranks";

// Returns the external servers (tools:ps). They may be restarted, so clients wait for them up to the usual timeout.
// Collective.
std::shared_ptr<ps::CurrentServers> external_servers(const ExperimentConfig& config, Communicator& world,
                                                     const std::shared_ptr<ps::Links>& links) {
  const auto& roles = config.roles;
  const ps::ServerList list{.servers = {},
                            .secret = read_secret(roles.secret_file),
                            .run = config.name,
                            .retry = Seconds(config.framework.timeout),
                            .replicas = static_cast<int>(roles.replicas),
                            .failover = Seconds(roles.failover),
                            .links = links,
                            .checksums = config.framework.checksums};
  try {
    return std::make_shared<ps::CurrentServers>(
        list.at(roles.servers_file.empty() ? roles.servers_at : ps::read_addresses(roles.servers_file, world)));
  } catch (const DataError& error) {
    throw ConfigError(std::string("roles.servers_file: ") + error.what());
  }
}

// Starts the servers of the run on the ranks from `training` on. Collective.
Role split_roles(const ExperimentConfig& config, const CommunicatorPtr& world, int training,
                 const std::shared_ptr<ps::Links>& links) {
  Role role{.training = training};
  const int rank = world->rank();
  const bool serves = rank >= training;
  auto started = ps::start_servers(serves, *world, links);
  role.server = std::move(started.own);
  role.world = world->split(serves ? 1 : 0, rank);
  if (serves) return role;
  role.presence = std::make_unique<ps::Client>(ps::ClientOptions{.servers = started.all.addresses_for(host_key()),
                                                                 .job = kPresence,
                                                                 .number = rank,
                                                                 .secret = started.all.secret,
                                                                 .timeout = Seconds(config.framework.timeout),
                                                                 .links = links});
  started.all.checksums = config.framework.checksums;
  role.servers = std::make_shared<ps::CurrentServers>(std::move(started.all));
  return role;
}

}  // namespace

Role assign_role(const ExperimentConfig& config, const CommunicatorPtr& world,
                 const std::shared_ptr<ps::Links>& links) {
  Role role{.world = world, .training = world->size()};
  if (config.roles.elsewhere()) {
    role.servers = external_servers(config, *world, links);
    return role;
  }
  const auto servers = static_cast<int>(config.roles.server);
  if (servers == 0) {
    const bool checksums = config.framework.checksums;
    if (links == nullptr && !checksums) return role;
    role.servers = std::make_shared<ps::CurrentServers>(
        ps::ServerList{.servers = {}, .secret = {}, .links = links, .checksums = checksums});
    return role;
  }
  const int training = world->size() - servers;
  if (training < 1) {
    throw ConfigError("roles.server: " + std::to_string(servers) + " of " + std::to_string(world->size()) +
                      " ranks leaves no rank to train");
  }
  return split_roles(config, world, training, links);
}

int serve(const Role& role, Seconds timeout) {
  log_info() << "this rank is a parameter server of " << role.training << " ranks";
  if (!role.server->wait_for_clients(kPresence, role.training, timeout)) {
    throw CommError(CommError::Kind::kTimeout, "parameter server: not all of the " + std::to_string(role.training) +
                                                   " ranks that train have connected within " +
                                                   std::to_string(static_cast<int>(timeout.count())) + " s");
  }
  role.server->wait_until_left(kPresence);
  log_info() << "all ranks that train have left";
  return kDone;
}

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#include "launch/job/role.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <exception>
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

// Returns a generation that is later than all before, of which ranks may know different ones. Collective.
std::int64_t next_generation(std::int64_t last, Communicator& world) {
  const at::Tensor latest = at::full({1}, last, at::kLong);
  world.all_reduce(latest, Reduction::kMax).wait();
  return latest.item<std::int64_t>() + 1;
}

// Starts the servers of the run on the ranks from `training` on. Collective.
Role split_roles(const ExperimentConfig& config, const CommunicatorPtr& world, int training,
                 const std::shared_ptr<ps::Links>& links, KeptRole* kept) {
  Role role{.presences = kPresence, .training = training, .goes_on = kept != nullptr};
  const int rank = world->rank();
  const bool serves = rank >= training;
  KeptRole none;
  KeptRole& own = kept != nullptr ? *kept : none;
  if (kept != nullptr) {
    own.servers.presences = kPresence;
    own.generation = next_generation(own.generation, *world);
    role.presences += " of generation " + std::to_string(own.generation);
  }
  auto started = ps::start_servers(serves, *world, links, own.servers);
  if (started.own) own.servers.own = std::move(started.own);
  own.servers.secret = started.all.secret;
  role.server = own.servers.own;
  role.world = world->split(serves ? 1 : 0, rank);
  if (serves) return role;
  role.presence = std::make_unique<ServerPresence>(ps::ClientOptions{.servers = started.all.addresses_for(host_key()),
                                                                     .job = role.presences,
                                                                     .number = rank,
                                                                     .secret = started.all.secret,
                                                                     .timeout = Seconds(config.framework.timeout),
                                                                     .links = links,
                                                                     .leaves = !role.goes_on});
  started.all.checksums = config.framework.checksums;
  started.all.generation = own.generation;
  started.all.replicas = static_cast<int>(
      std::min<std::size_t>(static_cast<std::size_t>(config.roles.replicas), started.all.servers.size()));
  started.all.failover = Seconds(config.roles.failover);
  role.servers = std::make_shared<ps::CurrentServers>(std::move(started.all));
  return role;
}

}  // namespace

ServerPresence::ServerPresence(ps::ClientOptions options)
    : leaves_by_itself_(options.leaves), client_(std::move(options)), exceptions_(std::uncaught_exceptions()) {}

ServerPresence::~ServerPresence() {
  if (!leaves_by_itself_ && std::uncaught_exceptions() == exceptions_) client_.leave();
}

void ServerPresence::check() const {
  if (!client_.has_lost_server()) return;
  throw CommError(CommError::Kind::kPeerLost, "a parameter server has ended, or it has lost another rank");
}

Role assign_role(const ExperimentConfig& config, const CommunicatorPtr& world, const std::shared_ptr<ps::Links>& links,
                 KeptRole* kept) {
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
  return split_roles(config, world, training, links, kept);
}

int serve(const Role& role, Seconds timeout) {
  log_info() << "this rank is a parameter server of " << role.training << " ranks";
  const auto throw_if_lost = [&role] {
    if (!role.server->has_lost(role.presences)) return;
    throw CommError(CommError::Kind::kPeerLost, "parameter server: a rank that trains has ended without leaving");
  };
  if (!role.server->wait_for_clients(role.presences, role.training, timeout)) {
    throw_if_lost();
    throw CommError(CommError::Kind::kTimeout, "parameter server: not all of the " + std::to_string(role.training) +
                                                   " ranks that train have connected within " +
                                                   std::to_string(static_cast<int>(timeout.count())) + " s");
  }
  if (role.goes_on) {
    role.server->wait_until_left_or_lost(role.presences);
    throw_if_lost();
  } else {
    role.server->wait_until_left(role.presences);
  }
  log_info() << "all ranks that train have left";
  return kDone;
}

}  // namespace phalanx

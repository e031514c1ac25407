#include "launch/job/roles.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/comm/locality.h"
#include "framework/comm/texts.h"
#include "framework/ps/authentication.h"
#include "framework/ps/client.h"
#include "framework/ps/server.h"
#include "launch/exit_status.h"

namespace phalanx {
namespace {

// The namespace in which ranks that train tell the servers that they are still there.
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

}  // namespace

int run_in_role(const Job& job, RankContext context) {
  const auto servers = static_cast<int>(job.config.roles.server);
  if (servers == 0) return job.body(context);
  const CommunicatorPtr world = context.world;
  const int training = world->size() - servers;
  if (training < 1) {
    throw ConfigError("roles.server: " + std::to_string(servers) + " of " + std::to_string(world->size()) +
                      " ranks leaves none to train");
  }
  const Seconds timeout(job.config.framework.timeout);
  const bool serves = world->rank() >= training;
  const std::string secret = broadcast_text(world->rank() == 0 ? ps::random_text() : "", *world);
  const auto hosts = all_gather_text(host_key(), *world);
  const bool one_host = std::ranges::all_of(hosts, [&](const auto& host) { return host == hosts.front(); });
  std::optional<ps::Server> server;
  if (serves) server.emplace(ps::ServerOptions{.listen = ps::listen_addresses(one_host), .secret = secret});
  const auto list =
      std::make_shared<const ps::ServerList>(ps::gather_servers(server ? &*server : nullptr, secret, *world));
  context.world = world->split(serves ? 1 : 0, world->rank());
  if (serves) return serve(*server, training, timeout);
  const ps::Client presence({.servers = list->reached_from(host_key()),
                             .job = kPresence,
                             .number = world->rank(),
                             .secret = secret,
                             .timeout = timeout});
  context.servers = list;
  return job.body(context);
}

}  // namespace phalanx

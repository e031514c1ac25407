// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/servers/parameter_service.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/json.h"
#include "framework/base/log.h"
#include "framework/comm/launch/locality.h"
#include "framework/ps/client/links.h"

namespace phalanx {
namespace {

constexpr int kNoMember = 1 << 20;  // the number of a client that is not a rank of the group

bool has_servers(const StrategyContext& context) {
  return context.servers != nullptr && !context.servers->list().servers.empty();
}

}  // namespace

ParameterService::ParameterService(const StrategyContext& context)
    : group_(context.group),
      owner_(context.level + "strategy of " + group_->name()),
      timeout_(context.timeout),
      servers_(has_servers(context) ? context.servers : nullptr),
      links_(context.servers ? context.servers->list().links : nullptr) {
  if (servers_) {
    const auto& list = servers_->list();
    // An earlier start may have left tables in the namespace that the first move leads to.
    if (!list.run.empty() && group_->rank() == 0) connect(list, 1)->clear();
    client_ = connect_without_old_tables(list, 0);
  } else {
    auto started = ps::start_servers(true, *group_, links_);
    server_ = std::move(started.own);
    started.all.checksums = context.servers && context.servers->list().checksums;
    client_ = connect(started.all, 0);
  }
  group_->barrier().wait();  // all ranks must connect before any server ends
}

std::unique_ptr<ps::Client> ParameterService::connect(const ps::ServerList& list, std::int64_t moves) const {
  return std::make_unique<ps::Client>(options_for(list, moves));
}

ps::ClientOptions ParameterService::options_for_later() const {
  ps::ClientOptions options = options_for(servers_->list(), moves_);
  options.number = kNoMember;
  return options;
}

ps::ClientOptions ParameterService::options_for(const ps::ServerList& list, std::int64_t moves) const {
  ps::ClientOptions options{.servers = list.addresses_for(host_key()),
                            .job = owner_,
                            .number = group_->rank(),
                            .secret = list.secret,
                            .timeout = timeout_,
                            .replicas = list.replicas,
                            .failover = list.failover,
                            .links = list.links,
                            .checksums = list.checksums};
  if (!list.run.empty()) {
    options.job = list.run + ": " + options.job + (moves % 2 == 1 ? ", moved" : "");
    options.retry = list.retry;
  } else {
    options.come_back = false;  // the servers are ranks of the job
  }
  if (list.generation > 0) options.job = std::to_string(list.generation) + ": " + options.job;
  return options;
}

std::unique_ptr<ps::Client> ParameterService::connect_without_old_tables(const ps::ServerList& list,
                                                                         std::int64_t moves) const {
  if (list.run.empty()) return connect(list, moves);  // servers that start with the job have no old tables
  if (group_->rank() > 0) group_->barrier().wait();
  auto client = connect(list, moves);
  if (group_->rank() == 0) {
    client->clear();  // the values of this start come from its own checkpoint
    group_->barrier().wait();
  }
  return client;
}

bool ParameterService::tables_are_there() const { return links_ != nullptr && links_->tables_are_there(); }

void ParameterService::on_change_of_servers(std::function<void()> move) {
  if (servers_) servers_->on_change(std::move(move));
}

std::unique_ptr<ps::Client> ParameterService::follow_servers() {
  lost_updates_ += client_->lost_updates();
  auto former = std::exchange(client_, connect_without_old_tables(servers_->list(), ++moves_));
  group_->barrier().wait();
  return former;
}

void ParameterService::leave(std::unique_ptr<ps::Client> former) {
  if (group_->rank() > 0) former.reset();
  group_->barrier().wait();  // no other rank uses the namespace any more
  if (group_->rank() > 0) return;
  try {
    former->clear();
  } catch (const Error& error) {  // the remaining tables are never read
    log_warning() << "the tables on a parameter server that the run no longer uses were not removed: " << error.what();
  }
}

Metrics ParameterService::metrics_of_servers(const std::string& prefix) const {
  Metrics all;
  std::vector<std::string> status;
  try {
    status = client_->status();
  } catch (const CommError& error) {  // a run that has ended without a server has its results
    log_warning() << "what parameter servers have done is unknown: " << error.what();
    return all;
  }
  for (std::size_t i = 0; i < status.size(); ++i) {
    const auto server = parse_json(status[i], "the status of server " + std::to_string(i)).raw();
    for (const std::string name : {"requests", "bytes_received", "bytes_sent"}) {
      double sum = 0;
      for (const auto& table : server.at("tables")) {
        if (table.at("job") == client_->job()) sum += table.at(name).get<double>();
      }
      all.emplace_back(prefix + "server_" + std::to_string(i) + "_" + name, sum);
    }
  }
  return all;
}

}  // namespace phalanx

#include "framework/ps/server_list.h"

#include <algorithm>
#include <sstream>

#include "framework/comm/address_for_peers.h"
#include "framework/comm/locality.h"
#include "framework/comm/texts.h"
#include "framework/ps/authentication.h"

namespace phalanx::ps {
namespace {

std::vector<std::string> listen_addresses(bool one_host) {
  std::vector<std::string> addresses{"unix:@phalanx-" + random_text().substr(0, 24)};
  if (!one_host) {
    const std::string host = address_for_peers(one_host);
    addresses.push_back((host.find(':') == std::string::npos ? host : "[" + host + "]") + ":0");
  }
  return addresses;
}

// Those of all ranks, in their order.
std::vector<ServerList::One> gather(const Server* own, Communicator& group) {
  std::string text;
  if (own != nullptr) {
    text = host_key();
    for (const auto& address : own->addresses()) text += "\n" + address;
  }
  std::vector<ServerList::One> servers;
  for (const auto& one : all_gather_text(text, group)) {
    if (one.empty()) continue;
    std::istringstream lines(one);
    auto& server = servers.emplace_back();
    std::getline(lines, server.host);
    for (std::string line; std::getline(lines, line);) server.addresses.push_back(line);
  }
  return servers;
}

}  // namespace

std::vector<std::vector<std::string>> ServerList::reached_from(const std::string& host) const {
  std::vector<std::vector<std::string>> all;
  for (const auto& server : servers) {
    auto& addresses = all.emplace_back();
    for (const auto& address : server.addresses) {
      if (server.host == host || !address.starts_with("unix:")) addresses.push_back(address);
    }
  }
  return all;
}

StartedServers start_servers(bool serves, Communicator& group) {
  StartedServers started;
  started.all.secret = broadcast_text(group.rank() == 0 ? random_text() : "", group);
  const auto hosts = all_gather_text(host_key(), group);
  const bool one_host = std::ranges::all_of(hosts, [&](const auto& host) { return host == hosts.front(); });
  if (serves) {
    started.own =
        std::make_unique<Server>(ServerOptions{.listen = listen_addresses(one_host), .secret = started.all.secret});
  }
  started.all.servers = gather(started.own.get(), group);
  return started;
}

}  // namespace phalanx::ps

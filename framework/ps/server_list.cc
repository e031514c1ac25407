// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/server_list.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/text.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/launch/peer_network.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/comm/texts.h"
#include "framework/ps/client/links.h"

namespace phalanx::ps {
namespace {

// Returns the address of this host for the ranks of other hosts. Ranks on rank 0's host use the address of the route to
// the first rank on another host, as framework/comm/store/own_address.h does with a store. Collective.
OwnAddress own_address(Communicator& group) {
  const std::string interface = wanted_interface("");
  const HostNetwork network = this_network();
  HostEntry mine = describe_host(interface, network);
  const auto first = HostEntry::from_text(broadcast_text(mine.to_text(), group));
  auto own = address_towards(first, "", interface, network);
  mine.addresses.clear();
  if (own) mine.addresses.push_back(own->text);
  for (const auto& text : all_gather_text(mine.to_text(), group)) {
    if (!own) own = address_towards(HostEntry::from_text(text), "", interface, network);
  }
  return own ? *own : choose_address({.interface = interface}, network);
}

std::vector<std::string> listen_addresses(const std::string& host) {
  std::vector<std::string> addresses{"unix:@phalanx-" + random_text().substr(0, 24)};
  if (!host.empty()) addresses.push_back(with_port(host, 0));
  return addresses;
}

// Returns the servers of all ranks, in the order of the ranks.
std::vector<ServerList::Entry> gather(const Server* own, Communicator& group) {
  std::string text;
  if (own != nullptr) {
    text = host_key();
    for (const auto& address : own->addresses()) text += "\n" + address;
  }
  std::vector<ServerList::Entry> servers;
  for (const auto& one : all_gather_text(text, group)) {
    if (one.empty()) continue;
    std::istringstream lines(one);
    auto& server = servers.emplace_back();
    std::getline(lines, server.host);
    for (std::string line; std::getline(lines, line);) server.addresses.push_back(line);
  }
  return servers;
}

bool looks_like_an_address(const std::string& text) {
  if (text.find_first_of(" \t") != std::string::npos) return false;
  if (text.starts_with("unix:")) return text.size() > 5;
  const auto colon = text.rfind(':');
  return colon != std::string::npos && colon > 0 && colon + 1 < text.size() &&
         text.find_first_not_of("0123456789", colon + 1) == std::string::npos;
}

// Shortens a line that is too long for a message.
std::string shown(const std::string& line) {
  constexpr std::size_t kLongest = 100;
  return line.size() <= kLongest ? line : line.substr(0, kLongest - 3) + "...";
}

}  // namespace

std::vector<std::string> read_addresses(const std::string& path) {
  std::vector<std::string> addresses;
  std::istringstream lines(read_file(path));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos) continue;
    line = line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
    const std::string where = path + ":" + std::to_string(number) + ": \"" + shown(line) + "\" ";
    if (!looks_like_an_address(line)) throw DataError(where + "is not an address; expected HOST:PORT or unix:PATH");
    if (std::ranges::find(addresses, line) != addresses.end()) throw DataError(where + "is listed twice");
    addresses.push_back(std::move(line));
  }
  if (addresses.empty()) throw DataError(path + ": has no address of a server; expected one per line, as HOST:PORT");
  return addresses;
}

std::vector<std::string> read_addresses(const std::string& path, Communicator& group) {
  const MeasuredInputs measured;  // a file that may have changed
  std::string text, problem;
  try {
    if (group.rank() == 0) text = join(read_addresses(path), "\n");
  } catch (const DataError& error) {
    problem = error.what();
  }
  problem = broadcast_text(problem, group);
  if (!problem.empty()) throw DataError(problem);
  std::istringstream lines(broadcast_text(text, group));
  std::vector<std::string> addresses;
  for (std::string line; std::getline(lines, line);) addresses.push_back(line);
  return addresses;
}

ServerList ServerList::at(const std::vector<std::string>& addresses) const {
  ServerList list = *this;
  list.servers.clear();
  for (const auto& address : addresses) list.servers.push_back({host_key(), {address}});
  return list;
}

std::vector<std::vector<std::string>> ServerList::addresses_for(const std::string& host) const {
  std::vector<std::vector<std::string>> all;
  for (const auto& server : servers) {
    auto& addresses = all.emplace_back();
    for (const auto& address : server.addresses) {
      if (server.host == host || !address.starts_with("unix:")) addresses.push_back(address);
    }
  }
  return all;
}

StartedServers start_servers(bool serves, Communicator& group, std::shared_ptr<Links> links, const KeptServers& kept) {
  const MeasuredInputs measured;  // random numbers, and addresses of this start
  StartedServers started;
  if (links && !links->need_servers()) serves = false;
  started.all.links = std::move(links);
  std::string secret;
  if (group.rank() == 0) secret = kept.secret.empty() ? random_text() : kept.secret;
  started.all.secret = broadcast_text(secret, group);
  const auto hosts = all_gather_text(host_key(), group);
  const bool one_host = std::ranges::all_of(hosts, [&](const auto& host) { return host == hosts.front(); });
  const std::string host = one_host ? "" : own_address(group).text;
  if (serves && kept.own == nullptr) {
    started.own = std::make_unique<Server>(
        ServerOptions{.listen = listen_addresses(host), .secret = started.all.secret, .presences = kept.presences});
  }
  started.all.servers = gather(kept.own ? kept.own.get() : started.own.get(), group);
  return started;
}

}  // namespace phalanx::ps

#include "framework/ps/server_list.h"

#include <sstream>

#include "framework/comm/address_for_peers.h"
#include "framework/comm/locality.h"
#include "framework/comm/texts.h"
#include "framework/ps/authentication.h"
#include "framework/ps/server.h"

namespace phalanx::ps {

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

std::vector<std::string> listen_addresses(bool one_host) {
  std::vector<std::string> addresses{"unix:@phalanx-" + random_text().substr(0, 24)};
  if (!one_host) {
    const std::string host = address_for_peers(one_host);
    addresses.push_back((host.find(':') == std::string::npos ? host : "[" + host + "]") + ":0");
  }
  return addresses;
}

ServerList gather_servers(const Server* own, const std::string& secret, Communicator& group) {
  std::string text;
  if (own != nullptr) {
    text = host_key();
    for (const auto& address : own->addresses()) text += "\n" + address;
  }
  ServerList list{.servers = {}, .secret = secret};
  for (const auto& one : all_gather_text(text, group)) {
    if (one.empty()) continue;
    std::istringstream lines(one);
    auto& server = list.servers.emplace_back();
    std::getline(lines, server.host);
    for (std::string line; std::getline(lines, line);) server.addresses.push_back(line);
  }
  return list;
}

}  // namespace phalanx::ps

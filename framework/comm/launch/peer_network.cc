// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/peer_network.h"

#include <algorithm>
#include <sstream>

#include "framework/comm/launch/locality.h"

namespace phalanx {
namespace {

bool is_direct(const std::string& peer, const HostNetwork& network) {
  return std::ranges::any_of(network.addresses, [&](const LocalAddress& own) {
    return !own.loopback && own.prefix_bits > 0 && in_same_network(peer, own.text, own.prefix_bits);
  });
}

// Returns the address of a peer to which the route is probably right: the first one in a network of this host, or else
// the first one. An address that this host has itself, such as that of a bridge for containers, leads nowhere.
std::string best_of(const std::vector<std::string>& addresses, const HostNetwork& network) {
  std::vector<std::string> foreign;
  for (const auto& address : addresses) {
    if (network.find(address) == nullptr) foreign.push_back(address);
  }
  for (const auto& address : foreign) {
    if (is_direct(address, network)) return address;
  }
  if (!foreign.empty()) return foreign.front();
  return addresses.empty() ? "" : addresses.front();
}

}  // namespace

std::string HostEntry::to_text() const {
  std::string text;
  for (const auto& address : addresses) text += address + " ";
  return text + "\n" + key;
}

HostEntry HostEntry::from_text(const std::string& text) {
  HostEntry entry;
  const auto end = std::min(text.find('\n'), text.size());
  std::istringstream words(text.substr(0, end));
  for (std::string word; words >> word;) entry.addresses.push_back(word);
  entry.key = text.substr(std::min(end + 1, text.size()));
  return entry;
}

HostEntry describe_host(const std::string& interface, const HostNetwork& network) {
  HostEntry entry{.key = host_key()};
  if (!interface.empty()) {
    entry.addresses.push_back(choose_address({.interface = interface}, network).text);
    return entry;
  }
  for (const auto& address : outward_addresses(network)) entry.addresses.push_back(address.text);
  if (entry.addresses.empty()) entry.addresses.push_back(choose_address({.one_host = true}, network).text);
  return entry;
}

std::optional<OwnAddress> address_towards(const HostEntry& other, const std::string& first_host,
                                          const std::string& interface, const HostNetwork& network) {
  if (other.key == host_key()) return std::nullopt;
  const std::string peer = first_host.empty() ? best_of(other.addresses, network) : first_host;
  return choose_address({.interface = interface, .peer = peer}, network);
}

}  // namespace phalanx

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

std::vector<std::string> in_order_of_reach(const HostEntry& other, const HostNetwork& network) {
  auto foreign = other.addresses;
  std::erase_if(foreign, [&](const std::string& address) { return network.find(address) != nullptr; });
  std::ranges::stable_partition(foreign, [&](const std::string& address) { return is_direct(address, network); });
  return foreign.empty() ? other.addresses : foreign;
}

std::optional<OwnAddress> address_towards(const HostEntry& other, const std::string& first_host,
                                          const std::string& interface, const HostNetwork& network) {
  if (other.key == host_key()) return std::nullopt;
  std::string peer = first_host;
  if (peer.empty() && !other.addresses.empty()) peer = in_order_of_reach(other, network).front();
  return choose_address({.interface = interface, .peer = peer}, network);
}

}  // namespace phalanx

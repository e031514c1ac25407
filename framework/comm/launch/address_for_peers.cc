// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/address_for_peers.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

OwnAddress own(const LocalAddress& address, const std::string& reason) {
  return {.text = address.text, .interface = address.interface, .reason = reason};
}

// Returns "eth0 (10.0.0.1, fd00::1), lo (127.0.0.1)".
std::string list_interfaces(const HostNetwork& network) {
  std::vector<std::string> names, texts;
  for (const auto& address : network.addresses) {
    const auto found = std::ranges::find(names, address.interface);
    if (found != names.end()) {
      texts[static_cast<std::size_t>(found - names.begin())] += ", " + address.text;
      continue;
    }
    names.push_back(address.interface);
    texts.push_back(address.text);
  }
  for (std::size_t i = 0; i < names.size(); ++i) names[i] += " (" + texts[i] + ")";
  return names.empty() ? "none" : join(names, ", ");
}

// Returns true if `wanted`, one entry of AddressWish::interface, names this address, its interface or its network.
bool names(const std::string& wanted, const LocalAddress& address) {
  if (wanted == address.interface || wanted == address.text) return true;
  const auto slash = wanted.find('/');
  if (slash == std::string::npos) return false;
  int bits = -1;
  const char* end = wanted.data() + wanted.size();
  const auto [rest, error] = std::from_chars(wanted.data() + slash + 1, end, bits);
  if (error != std::errc() || rest != end || bits < 0) return false;
  return in_same_network(wanted.substr(0, slash), address.text, bits);
}

OwnAddress address_of_interface(const std::string& list, const HostNetwork& network) {
  std::istringstream entries(list);
  for (std::string wanted; std::getline(entries, wanted, ',');) {
    for (const auto& address : network.addresses) {
      if (names(wanted, address)) return own(address, "set as " + wanted);
    }
  }
  throw ConfigError(host_name() + " has no network interface \"" + list + "\" that is up and has an address; it has " +
                    list_interfaces(network) +
                    "; correct framework.interface, PHALANX_INTERFACE or GLOO_SOCKET_IFNAME");
}

// Containers and virtual machines of this host are connected to such interfaces; no other host is.
bool is_bridge(const LocalAddress& address) {
  for (const char* begin : {"docker", "br-", "virbr", "veth", "lxc", "cni", "podman"}) {
    if (address.interface.starts_with(begin)) return true;
  }
  return false;
}

std::optional<OwnAddress> loopback(const HostNetwork& network) {
  const auto found = std::ranges::find(network.addresses, true, &LocalAddress::loopback);
  if (found == network.addresses.end()) return std::nullopt;
  return own(*found, "all ranks are on this host");
}

std::optional<OwnAddress> of_route(const std::string& peer, const HostNetwork& network) {
  const auto* source = network.find(network.source_towards(peer));
  if (source == nullptr) return std::nullopt;
  return own(*source, "the route to " + peer);
}

}  // namespace

std::string OwnAddress::describe() const { return text + " of " + interface + ", " + reason; }

std::string wanted_interface(const std::string& configured) {
  if (!configured.empty()) return configured;
  const auto own_variable = environment("PHALANX_INTERFACE").value_or("");
  return own_variable.empty() ? environment("GLOO_SOCKET_IFNAME").value_or("") : own_variable;
}

std::vector<OwnAddress> outward_addresses(const HostNetwork& network) {
  std::vector<OwnAddress> all;
  const auto add = [&](const LocalAddress& address, const std::string& reason) {
    if (!address.loopback && std::ranges::find(all, address.text, &OwnAddress::text) == all.end()) {
      all.push_back(own(address, reason));
    }
  };
  for (const auto& text : network.named) {
    if (const auto* address = network.find(text)) add(*address, "to which the host's name resolves");
  }
  for (const bool bridge : {false, true}) {
    for (const auto& address : network.addresses) {
      if (is_bridge(address) == bridge) add(address, "the first interface that is up");
    }
  }
  return all;
}

OwnAddress choose_address(const AddressWish& wish, const HostNetwork& network) {
  if (!wish.interface.empty()) return address_of_interface(wish.interface, network);
  std::optional<OwnAddress> chosen;
  if (wish.one_host) chosen = loopback(network);
  if (!chosen && !wish.peer.empty()) chosen = of_route(wish.peer, network);
  if (chosen) return *chosen;
  if (const auto outward = outward_addresses(network); !outward.empty()) return outward.front();
  if (wish.one_host) {
    throw ConfigError(host_name() + " has no network address; bring up its loopback interface (ip link set lo up)");
  }
  throw ConfigError(host_name() + " has no address at which other hosts could reach it; its interfaces are " +
                    list_interfaces(network));
}

OwnAddress address_for_peers(const AddressWish& wish) { return choose_address(wish, this_network()); }

}  // namespace phalanx

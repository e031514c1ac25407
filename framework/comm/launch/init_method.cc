// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/init_method.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr const char* kEnvironment = "env://";
constexpr const char* kLauncher = "a script";  // which has started each process by itself

[[noreturn]] void refuse(const InitMethod& init, const std::string& why) {
  throw ConfigError("init_method " + (init.url.empty() ? kEnvironment : init.url) + ": " + why);
}

struct Place {
  std::string address;  // the URL without its parameters
  std::string host{}, port{};
  std::optional<int> rank{}, world_size{};
};

int to_number(const InitMethod& init, const std::string& name, const std::string& text) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && rest == end && number >= 0) return number;
  refuse(init, name + ": expected a whole number, got \"" + text + "\"");
}

void read_parameters(const InitMethod& init, std::string text, Place& place) {
  while (!text.empty()) {
    const auto next = std::min(text.find('&'), text.size());
    const std::string parameter = text.substr(0, next);
    text.erase(0, next + 1);
    const auto equals = std::min(parameter.find('='), parameter.size());
    const std::string name = parameter.substr(0, equals);
    if (name != "rank" && name != "world_size") refuse(init, "\"" + name + "\" is neither rank nor world_size");
    auto& number = name == "rank" ? place.rank : place.world_size;
    number = to_number(init, name, parameter.substr(std::min(equals + 1, parameter.size())));
  }
}

// Splits "tcp://host:port", where the host may be an IPv6 address in brackets.
void read_host(const InitMethod& init, Place& place) {
  const std::string text = place.address.substr(place.address.find("://") + 3);
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) refuse(init, "expected tcp://host:port");
  place.host = text.substr(0, colon);
  place.port = text.substr(colon + 1);
  if (to_number(init, "port", place.port) < 1 || to_number(init, "port", place.port) > 65535) {
    refuse(init, "port " + place.port + " is not between 1 and 65535");
  }
}

// Ranks that `init` gives take precedence over those in its URL.
Place read_place(const InitMethod& init) {
  const std::string url = init.url.empty() ? kEnvironment : init.url;
  const auto query = std::min(url.find('?'), url.size());
  Place place{.address = url.substr(0, query)};
  read_parameters(init, url.substr(std::min(query + 1, url.size())), place);
  if (place.address.starts_with("tcp://")) {
    read_host(init, place);
  } else if (!place.address.starts_with("file:///") && place.address != kEnvironment) {
    refuse(init, "expected env://, tcp://host:port or file:///path");
  }
  if (init.rank) place.rank = init.rank;
  if (init.world_size) place.world_size = init.world_size;
  if (place.rank.has_value() != place.world_size.has_value()) {
    refuse(init, place.rank ? "rank is given, but world_size is not" : "world_size is given, but rank is not");
  }
  if (place.rank && (*place.rank < 0 || *place.rank >= *place.world_size)) {
    refuse(init, "rank " + std::to_string(*place.rank) + " is not one of " + std::to_string(*place.world_size));
  }
  return place;
}

// Returns the variables with the place as torchrun would have set it, so that they are read in one way only.
Variables with_place(const Place& place, const Variables& variables) {
  std::map<std::string, std::string> set;
  if (place.rank) {
    set = {{"RANK", std::to_string(*place.rank)}, {"WORLD_SIZE", std::to_string(*place.world_size)}};
    // They belong to the launcher around a script that gives each process its rank.
    for (const char* hidden : {"PHALANX_LAUNCHER", "TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK"}) set[hidden] = "";
  }
  if (place.address != kEnvironment) {
    set["MASTER_ADDR"] = place.host.empty() ? "-" : place.host;  // a file's ranks may be on any hosts
    set["MASTER_PORT"] = place.host.empty() ? "1" : place.port;
  }
  return [set = std::move(set), variables](const std::string& name) -> std::optional<std::string> {
    const auto found = set.find(name);
    if (found == set.end()) return variables(name);
    return found->second.empty() ? std::nullopt : std::optional(found->second);
  };
}

}  // namespace

std::optional<LaunchEnvironment> detect_launch_environment(const InitMethod& init, const Variables& variables) {
  if (init.empty()) return detect_launch_environment(variables);
  const Place place = read_place(init);
  auto found = detect_launch_environment(with_place(place, variables));
  if (!found) {
    refuse(init, "the rank of this process is unknown; give rank and world_size, or set RANK and WORLD_SIZE");
  }
  if (place.rank) found->launcher = kLauncher;
  const auto& rank_info = found->rank_info;
  found->mpi = false;
  found->rendezvous =
      place.address + "?rank=" + std::to_string(rank_info.rank) + "&world_size=" + std::to_string(rank_info.size);
  return found;
}

std::optional<LaunchEnvironment> detect_launch_environment(const InitMethod& init) {
  return detect_launch_environment(init, &environment);
}

}  // namespace phalanx

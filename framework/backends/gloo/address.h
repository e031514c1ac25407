#pragma once

#include <memory>
#include <string>

#include "framework/comm/launch_environment.h"

namespace gloo::transport::tcp {
class Device;
}

namespace phalanx::gloo {

/// An address of this host at which its peers reach it, as text: the loopback where all ranks are on one host; the
/// first of `interface` where one is named; else the first of the host's name that is no loopback; else the first of
/// the first interface that is up and no loopback. IPv4 before IPv6. Throws ConfigError where there is none.
std::string address_for_peers(const RankInfo& rank_info, const std::string& interface);

/// Gloo's thread and its place in the network. It does not get SIGPIPE. Throws ConfigError where `address` is not one
/// of this host.
std::shared_ptr<::gloo::transport::tcp::Device> open_device(const std::string& address);

}  // namespace phalanx::gloo

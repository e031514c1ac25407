// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace gloo::transport::tcp {
class Device;
}

namespace phalanx::gloo {

/// Gloo's thread and its place in the network. It does not get SIGPIPE. Throws ConfigError where `address` is not one
/// of this host.
std::shared_ptr<::gloo::transport::tcp::Device> open_device(const std::string& address);

}  // namespace phalanx::gloo

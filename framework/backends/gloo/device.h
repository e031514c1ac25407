// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace gloo::transport::tcp {
class Device;
}

namespace phalanx::gloo {

/// Opens Gloo's thread, which blocks SIGPIPE. Sockets at which Gloo itself listens are not used (connect.h), and are
/// bound to the loopback interface. Throws ConfigError if this host has none that works.
std::shared_ptr<::gloo::transport::tcp::Device> open_device();

}  // namespace phalanx::gloo

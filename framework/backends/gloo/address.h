// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace gloo::transport::tcp {
class Device;
}

namespace phalanx::gloo {

/// Opens Gloo's thread and its listening address; the thread blocks SIGPIPE. Throws ConfigError if `address` is not an
/// address of this host.
std::shared_ptr<::gloo::transport::tcp::Device> open_device(const std::string& address);

}  // namespace phalanx::gloo

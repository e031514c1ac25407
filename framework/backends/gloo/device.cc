// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/device.h"

#include <gloo/transport/tcp/device.h>
#include <signal.h>

#include <exception>
#include <string>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/comm/launch/address_for_peers.h"

namespace phalanx::gloo {
namespace {

// Later versions of Gloo can delay connecting until the first message; here all peers are connected at once.
template <class Device>
std::shared_ptr<Device> make_device(const ::gloo::transport::tcp::attr& attributes) {
  if constexpr (std::is_constructible_v<Device, const ::gloo::transport::tcp::attr&>) {
    return std::make_shared<Device>(attributes);
  } else {
    return std::make_shared<Device>(attributes, /*lazyInit=*/false);
  }
}

}  // namespace

std::shared_ptr<::gloo::transport::tcp::Device> open_device() {
  const std::string loopback = address_for_peers({.one_host = true}).text;  // 127.0.0.1, or ::1 without IPv4
  sigset_t pipe, before;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);  // the new thread inherits it
  std::shared_ptr<::gloo::transport::tcp::Device> device;
  std::string failure;
  try {
    const auto attributes = ::gloo::transport::tcp::CreateDeviceAttr(loopback.c_str());
    device = make_device<::gloo::transport::tcp::Device>(attributes);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!device) {
    throw ConfigError("gloo: cannot use the loopback address " + loopback + ": " + failure);
  }
  return device;
}

}  // namespace phalanx::gloo

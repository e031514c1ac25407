// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/address.h"

#include <gloo/transport/tcp/device.h>
#include <signal.h>

#include <exception>

#include "framework/base/error.h"

namespace phalanx::gloo {

std::shared_ptr<::gloo::transport::tcp::Device> open_device(const std::string& address) {
  sigset_t pipe, before;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);  // the new thread inherits it
  std::shared_ptr<::gloo::transport::tcp::Device> device;
  std::string failure;
  try {
    const auto attributes = ::gloo::transport::tcp::CreateDeviceAttr(address.c_str());
    device = std::make_shared<::gloo::transport::tcp::Device>(attributes);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!device) throw ConfigError("gloo: cannot use the address " + address + " of this host: " + failure);
  return device;
}

}  // namespace phalanx::gloo

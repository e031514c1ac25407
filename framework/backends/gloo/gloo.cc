// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "framework/backends/gloo/communicator.h"
#include "framework/backends/gloo/config.h"
#include "framework/backends/gloo/connect.h"
#include "framework/backends/gloo/device.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/address_for_peers.h"
#include "framework/comm/store/connection_secret.h"

namespace phalanx {
namespace {

CommunicatorPtr connect_world(const gloo::Config& config, const ConnectOptions& options) {
  const auto& rank_info = options.rank_info;
  if (!options.store) throw ConfigError("backend gloo needs a store for the rendezvous of its ranks");
  const OwnAddress own =
      options.address.empty() || !config.interface.empty()
          ? address_for_peers({.one_host = rank_info.one_host(), .interface = wanted_interface(config.interface)})
          : options.address;
  const gloo::Member member{
      .group = "world",
      .rank = rank_info.rank,
      .size = rank_info.size,
      .timeout = options.timeout,
      .endpoint = {.host = own.text, .secret = connection_secret(*options.store, "gloo/secret", rank_info.rank)},
      .address = own.describe(),
      .numbers = options.numbers,
      .lasting_check = options.check};
  auto device = gloo::open_device();
  auto transport = gloo::connect(member, std::move(device), gloo::exchange_through(*options.store, member));
  auto queue = std::make_shared<OperationQueue>();
  if (wants_progress_thread(options)) queue->start_progress_thread();
  return std::make_shared<gloo::GlooCommunicator>(std::make_shared<gloo::Group>(member.group, std::move(transport)),
                                                  std::move(queue));
}

const bool gloo_registered =
    Backends::global().add<gloo::Config>("gloo", "ranks are processes on any hosts, or threads, connected by TCP",
                                         BackendTraits{.connects_hosts = true, .shrinks = true}, &connect_world);

}  // namespace
}  // namespace phalanx

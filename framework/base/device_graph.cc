// SPDX-License-Identifier: Apache-2.0
#include "framework/base/device_graph.h"

#include <map>
#include <mutex>
#include <utility>

namespace phalanx {
namespace {

struct Makers {
  std::mutex mutex;
  std::map<c10::DeviceType, MakeDeviceGraph> by_type;
};

Makers& graph_makers() {
  static Makers makers;
  return makers;
}

}  // namespace

void set_device_graphs(c10::DeviceType type, MakeDeviceGraph make) {
  Makers& makers = graph_makers();
  const std::lock_guard lock(makers.mutex);
  makers.by_type[type] = std::move(make);
}

std::unique_ptr<DeviceGraph> make_device_graph(c10::DeviceType type) {
  Makers& makers = graph_makers();
  const std::lock_guard lock(makers.mutex);
  const auto found = makers.by_type.find(type);
  return found == makers.by_type.end() ? nullptr : found->second();
}

}  // namespace phalanx

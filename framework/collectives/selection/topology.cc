// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/topology.h"

#include <ATen/ops/zeros.h>
#include <sys/utsname.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <thread>

#include "framework/base/text.h"
#include "framework/base/version.h"
#include "framework/comm/launch/locality.h"

namespace phalanx {
namespace {

constexpr std::size_t kLongest = 127;

// The description of its host that each rank sends to the others.
struct RankRecord {
  std::uint64_t host = 0;  // hash of its key
  char cpu[kLongest + 1] = {};
  std::int64_t cores = 0;
};

// Processors without a model name (ARM) are described by their architecture.
std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "unknown";
}

RankRecord own_record() {
  RankRecord record;
  record.host = std::hash<std::string>()(host_key());
  cpu_model().copy(record.cpu, kLongest);
  record.cores = std::thread::hardware_concurrency();
  return record;
}

std::vector<RankRecord> exchange(Communicator& world) {
  const RankRecord mine = own_record();
  const auto size = static_cast<std::int64_t>(sizeof(RankRecord));
  const at::Tensor input = at::zeros({size}, at::kByte);
  const at::Tensor output = at::zeros({size * world.size()}, at::kByte);
  std::memcpy(input.data_ptr(), &mine, sizeof mine);
  world.all_gather(output, input).wait();
  std::vector<RankRecord> records(static_cast<std::size_t>(world.size()));
  std::memcpy(records.data(), output.data_ptr(), records.size() * sizeof(RankRecord));
  return records;
}

std::string list(const Topology& topology, const std::function<std::string(const Topology::Host&)>& field) {
  std::vector<std::string> texts;
  for (const auto& host : topology.hosts) texts.push_back(field(host));
  if (std::ranges::adjacent_find(texts, std::not_equal_to<>()) == texts.end() && !texts.empty()) return texts.front();
  return join(texts, ", ");
}

std::string or_none(const std::string& text) { return text.empty() ? "none" : text; }

}  // namespace

int Topology::ranks() const {
  return std::accumulate(hosts.begin(), hosts.end(), 0, [](int sum, const Host& host) { return sum + host.ranks; });
}

Topology detect_topology(Communicator& world, const std::string& backend, const std::string& mpi) {
  Topology topology{.backend = backend, .phalanx = kVersion, .libtorch = TORCH_VERSION, .mpi = mpi};
  std::vector<std::uint64_t> hosts;
  for (const RankRecord& record : exchange(world)) {
    const auto known = std::ranges::find(hosts, record.host);
    const auto position = static_cast<std::size_t>(known - hosts.begin());
    if (known == hosts.end()) {
      hosts.push_back(record.host);
      topology.hosts.push_back({.ranks = 0, .cores = static_cast<int>(record.cores), .cpu = record.cpu});
    }
    ++topology.hosts[position].ranks;
  }
  return topology;
}

std::vector<std::string> differences(const Topology& measured, const Topology& here) {
  std::vector<std::string> found;
  const auto compare = [&](const std::string& what, const std::string& then, const std::string& now) {
    if (then != now) found.push_back(what + " " + or_none(then) + ", here " + or_none(now));
  };
  using Host = Topology::Host;
  const auto compare_hosts = [&](const std::string& what, const std::function<std::string(const Host&)>& field) {
    compare(what, list(measured, field), list(here, field));
  };
  compare("hosts", std::to_string(measured.hosts.size()), std::to_string(here.hosts.size()));
  compare_hosts("ranks per host", [](const Host& host) { return std::to_string(host.ranks); });
  compare_hosts("cores", [](const Host& host) { return std::to_string(host.cores); });
  compare_hosts("CPU", [](const Host& host) { return host.cpu; });
  compare("device", measured.device, here.device);
  compare("backend", measured.backend, here.backend);
  compare("Phalanx", measured.phalanx, here.phalanx);
  compare("LibTorch", measured.libtorch, here.libtorch);
  compare("MPI", measured.mpi, here.mpi);
  compare("levels", measured.levels, here.levels);
  return found;
}

std::string describe(const Topology& topology) {
  const auto hosts = topology.hosts.size();
  return std::to_string(topology.ranks()) + " ranks on " + std::to_string(hosts) + (hosts == 1 ? " host" : " hosts") +
         " by " + topology.backend +
         "; cores: " + list(topology, [](const auto& host) { return std::to_string(host.cores); }) + " of " +
         list(topology, [](const auto& host) { return host.cpu; });
}

}  // namespace phalanx

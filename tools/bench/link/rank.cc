// SPDX-License-Identifier: Apache-2.0
// One rank of a measurement between two hosts: times all_reduce, and counts the bytes that cross an interface during
// that time. Rank 0 writes a line of JSON for each size:
//   {"bytes": 16777216, "seconds": [0.14, ...], "sent": 17541234, "received": 17541234}
// seconds: duration of each round, until the last rank has finished; sent, received: bytes of rank 0's interface, per
// round.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gflags/gflags.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/backend.h"
#include "framework/comm/store/rendezvous.h"

DEFINE_string(backend, "hybrid", "name of a registered backend");
DEFINE_string(bytes, "16MB", "sizes, separated by commas");
DEFINE_int32(rounds, 10, "measurements of each size");
DEFINE_int32(warm_up, 2, "warm-up rounds before them");
DEFINE_string(interface, "", "network interface of rank 0 whose bytes are counted");
DEFINE_bool(mpirun, false, "only print the path of mpirun");

namespace phalanx {
namespace {

constexpr Seconds kTimeout{60};

struct Traffic {
  std::int64_t sent = 0;
  std::int64_t received = 0;
};

std::int64_t read_counter(const std::string& name) {
  const std::string path = "/sys/class/net/" + FLAGS_interface + "/statistics/" + name;
  std::ifstream file(path);
  std::int64_t bytes = 0;
  if (!(file >> bytes)) throw ConfigError("--interface: cannot read " + path);
  return bytes;
}

// Returns the counters on rank 0 only: the interfaces of its peers have other names.
Traffic traffic(const Communicator& world) {
  if (FLAGS_interface.empty() || world.rank() != 0) return {};
  return {.sent = read_counter("tx_bytes"), .received = read_counter("rx_bytes")};
}

CommunicatorPtr connect() {
  const auto launched = detect_launch_environment();
  if (!launched) throw ConfigError("this process was not started as a rank by a launcher");
  StorePtr store;
  if (!launched->rendezvous.empty()) store = rendezvous(launched->rendezvous, kTimeout).store;
  auto world = Backends::Choice(FLAGS_backend).make({launched->rank_info, store, kTimeout});
  if (launched->rank_info.rank != 0) store.reset();  // rank 0, which may serve the store, leaves last
  world->barrier().wait();
  return world;
}

void measure(Communicator& world, std::int64_t bytes) {
  const at::Tensor tensor = world.allocate({bytes / 4}, at::kFloat);
  const at::Tensor seconds = at::empty({FLAGS_rounds}, at::kDouble);
  for (int round = 0; round < FLAGS_warm_up; ++round) world.all_reduce(tensor, Reduction::kSum).wait();
  world.barrier().wait();
  const Traffic before = traffic(world);
  world.barrier().wait();  // nobody sends before rank 0 has read the counters
  for (int round = 0; round < FLAGS_rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    world.all_reduce(tensor, Reduction::kSum).wait();
    seconds[round] = Seconds(std::chrono::steady_clock::now() - start).count();
    world.barrier().wait();
  }
  const Traffic after = traffic(world);
  world.all_reduce(seconds, Reduction::kMax).wait();
  if (world.rank() != 0) return;
  const auto* begin = seconds.const_data_ptr<double>();
  const nlohmann::json line = {{"bytes", bytes},
                               {"seconds", std::vector<double>(begin, begin + FLAGS_rounds)},
                               {"sent", (after.sent - before.sent) / FLAGS_rounds},
                               {"received", (after.received - before.received) / FLAGS_rounds}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

void run() {
  at::set_num_threads(1);
  const auto world = connect();
  std::istringstream sizes(FLAGS_bytes);
  for (std::string size; std::getline(sizes, size, ',');) measure(*world, parse_bytes(size));
}

}  // namespace
}  // namespace phalanx

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (FLAGS_mpirun) {
    std::puts(PHALANX_MPI_HOME "/bin/mpirun");
    return 0;
  }
  try {
    phalanx::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

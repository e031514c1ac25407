// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/zeros.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/operations/reduction.h"

// A rank that ends as its argument says. The guilty rank fails; the innocent ranks do what ranks normally do.
namespace phalanx {
namespace {

CommunicatorPtr connect(Seconds timeout) {
  ConnectOptions options{.rank_info = {}, .store = nullptr, .timeout = timeout};
  if (const auto launch = detect_launch_environment()) options.rank_info = launch->rank_info;
  return Backends::Choice("mpi").make(options);
}

void reduce_once(Communicator& world) {
  auto tensor = at::zeros({10});
  world.all_reduce(tensor, Reduction::kSum).wait();
}

// An operation that an innocent rank waits for in vain if the guilty rank is absent.
void wait_in_vain(Communicator& world, const std::string& how) {
  const int guilty = world.size() - 1;
  if (how == "absent") reduce_once(world);
  if (how == "absent from a barrier") world.barrier(Seconds(0.3)).wait();
  if (how == "absent sender") world.recv(at::zeros({10}), guilty, 7).wait();
  if (how == "absent receiver") world.send(at::zeros({10'000'000}), guilty, 7).wait();
  if (how == "absent from a user reduction") {
    const auto first = Reduction::custom<float>("first", [](auto, auto) {});
    world.all_reduce(at::zeros({10}), first).wait();
  }
}

// Also checks that a second operation after the failure does not wait, since the group is broken.
void wait_in_vain_twice(Communicator& world, const std::string& how) {
  try {
    wait_in_vain(world, how);
  } catch (const CommError& error) {
    std::printf("%s\n", error.what());
    wait_in_vain(world, how);
  }
}

// The guilty rank throws; the others go on without it.
void survive(const CommunicatorPtr& world) {
  if (world->rank() == world->size() - 1) throw std::runtime_error("as told");
  try {
    reduce_once(*world);
  } catch (const CommError& error) {
    std::printf("%s\n", error.what());
    const auto left = world->shrink();
    reduce_once(*left);
    std::printf("%d are left\n", left->size());
  }
}

int end(const std::string& how) {
  const bool absent = how.starts_with("absent");
  const auto world = connect(Seconds(absent && how != "absent from a barrier" ? 0.3 : 60));
  const bool guilty = world->rank() == world->size() - 1;
  reduce_once(*world);
  if (how == "late" && !guilty) std::this_thread::sleep_for(std::chrono::seconds(2));
  if (how == "killed" && guilty) ::raise(SIGKILL);
  if (how == "throw" && guilty) throw std::runtime_error("as told");
  if (absent && guilty) std::this_thread::sleep_for(std::chrono::seconds(60));
  if (how == "seven") return 7;
  if (how == "survived") survive(world);
  if (how == "throw" || how == "killed") reduce_once(*world);
  if (absent) wait_in_vain_twice(*world, how);
  std::printf("rank %d ends\n", world->rank());
  return 0;
}

}  // namespace
}  // namespace phalanx

int main(int, char** argv) {
  try {
    return phalanx::end(argv[1]);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}

#include <ATen/ops/zeros.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/launch_environment.h"

// One rank that ends as its argument says. The other ranks do what an innocent rank would.
namespace phalanx {
namespace {

CommunicatorPtr connect(Seconds timeout) {
  World world{.place = {}, .store = nullptr, .timeout = timeout};
  if (const auto launch = detect_launch_environment()) world.place = launch->place;
  return Backends::Choice("mpi").make(world);
}

void reduce_once(Communicator& world) {
  auto tensor = at::zeros({10});
  world.all_reduce(tensor, Reduction::kSum).wait();
}

int end(const std::string& how) {
  const auto world = connect(Seconds(how == "absent" ? 0.3 : 60));
  const bool guilty = world->rank() == world->size() - 1;
  reduce_once(*world);
  if (how == "late" && !guilty) std::this_thread::sleep_for(std::chrono::seconds(2));
  if (how == "throw" && guilty) throw std::runtime_error("as told");
  if (how == "absent" && guilty) std::this_thread::sleep_for(std::chrono::seconds(60));
  if (how == "seven") return 7;
  if (how == "throw" || how == "absent") reduce_once(*world);
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

#include "engine/checkpoint/random_part.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "framework/base/error.h"

namespace phalanx {
namespace {

constexpr const char* kName = "cpu";

at::Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

Part random_part(int rank) {
  return {.name = "random",
          .save =
              [] {
                return NamedTensors{{kName, generator_state()}};
              },
          .load =
              [rank](const SavedRanks& saved) {
                for (const auto& [name, state] : saved.of(rank % saved.ranks)) {
                  if (name == kName) return set_generator_state(state);
                }
                throw DataError("the checkpoint has no state of the random numbers");
              }};
}

}  // namespace phalanx

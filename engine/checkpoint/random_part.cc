#include "engine/checkpoint/random_part.h"

#include <ATen/Context.h>
#include <ATen/ops/randint.h>

#include <cstdint>
#include <limits>

#include "framework/base/error.h"
#include "framework/base/random.h"
#include "framework/parallel/random_state.h"

namespace phalanx {
namespace {

constexpr const char* kName = "cpu";

// A rank that was not there when the run was saved begins with another's state, and draws other numbers.
void branch_off(int rank) {
  const auto next = at::randint(std::numeric_limits<std::int64_t>::max(), {1}, at::kLong).item<std::int64_t>();
  at::manual_seed(mix(static_cast<std::uint64_t>(next), static_cast<std::uint64_t>(rank)));
}

}  // namespace

CheckpointPart random_part(int rank) {
  return {.name = "random",
          .save = [] { return NamedTensors{{kName, random_state()}}; },
          .load =
              [rank](const SavedRanks& saved) {
                for (const auto& [name, state] : saved.of(rank % saved.ranks)) {
                  if (name != kName) continue;
                  set_random_state(state);
                  if (rank >= saved.ranks) branch_off(rank);
                  return;
                }
                throw DataError("the checkpoint has no state of the random numbers");
              }};
}

}  // namespace phalanx

#include "engine/checkpoint/random_part.h"

#include "framework/base/error.h"
#include "framework/parallel/random_state.h"

namespace phalanx {
namespace {

constexpr const char* kName = "cpu";

}  // namespace

Part random_part(int rank) {
  return {.name = "random",
          .save =
              [] {
                return NamedTensors{{kName, random_state()}};
              },
          .load =
              [rank](const SavedRanks& saved) {
                for (const auto& [name, state] : saved.of(rank % saved.ranks)) {
                  if (name == kName) return set_random_state(state);
                }
                throw DataError("the checkpoint has no state of the random numbers");
              }};
}

}  // namespace phalanx

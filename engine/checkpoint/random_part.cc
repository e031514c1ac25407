// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/random_part.h"

#include <ATen/Context.h>

#include <cstdint>
#include <string>

#include "framework/base/error.h"
#include "framework/base/random.h"
#include "framework/parallel/random_state.h"

namespace phalanx {
namespace {

// Seeds a rank that has no saved state of this kind, so that it draws different numbers from the rank that saved
// `state`.
void branch_off(const at::Tensor& state, int rank) {
  std::uint64_t seed = static_cast<std::uint64_t>(rank);
  const auto* const bytes = state.const_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < state.numel(); ++i) seed = mix(seed, bytes[i]);
  at::manual_seed(seed);
}

}  // namespace

CheckpointPart random_part(int rank, c10::Device device) {
  const std::string own = c10::DeviceTypeName(device.type(), /*lower_case=*/true);
  return {.name = "random",
          .save = [own, device] { return NamedTensors{{own, random_state(device)}}; },
          .load =
              [rank, own, device](const SavedRanks& saved) {
                const auto tensors = saved.of(rank % saved.ranks);
                if (tensors.empty()) throw DataError("the checkpoint has no state of the random number generator");
                const auto& [kind, state] = tensors.front();
                if (kind == own) set_random_state(state, device);
                if (kind != own || rank >= saved.ranks) branch_off(state, rank);
              }};
}

}  // namespace phalanx

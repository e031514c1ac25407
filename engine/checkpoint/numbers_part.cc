// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/numbers_part.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace phalanx {

CheckpointPart numbers_part(std::string name, std::function<std::vector<double>()> save,
                            std::function<void(const std::vector<double>&)> load) {
  return {.name = std::move(name),
          .save =
              [save = std::move(save)] {
                const auto state = save();
                at::Tensor numbers = at::empty({static_cast<std::int64_t>(state.size())}, at::kDouble);
                std::ranges::copy(state, numbers.data_ptr<double>());
                return NamedTensors{{"state", numbers}};
              },
          .load =
              [load = std::move(load)](const SavedRanks& saved) {
                std::vector<double> state;
                for (const auto& [_, numbers] : saved.of(0)) {
                  const auto* first = numbers.data_ptr<double>();
                  state.assign(first, first + numbers.numel());
                }
                load(state);
              },
          .every_rank = false};
}

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#include "models/model_traits.h"

#include <utility>

#include "framework/base/text.h"
#include "models/model.h"

namespace phalanx {

std::vector<std::string> ModelTraits::names() const {
  std::vector<std::string> all;
  for (const auto& [name, holds] :
       {std::pair("activation_checkpointing", activation_checkpointing), std::pair("block_chain", block_chain),
        std::pair("context_parallel", context_parallel), std::pair("expert_parallel", expert_parallel),
        std::pair("generative", generative), std::pair("incremental_decoding", incremental_decoding),
        std::pair("sequence_parallel", sequence_parallel)}) {
    if (holds) all.emplace_back(name);
  }
  return all;
}

std::string models_with(bool ModelTraits::* trait) { return join(Models::global().names_where(trait), ", "); }

}  // namespace phalanx

// SPDX-License-Identifier: Apache-2.0
#include "engine/build/tensor_holders.h"

#include <set>

#include "framework/base/error.h"
#include "models/block_chain.h"

namespace phalanx {

std::vector<WholeTensor> described(const NamedTensors& tensors) {
  std::vector<WholeTensor> all;
  for (const auto& [name, tensor] : tensors) all.push_back({name, tensor.sizes().vec(), tensor.scalar_type()});
  return all;
}

TensorHolders::TensorHolders(const Model& model, const std::vector<std::vector<std::size_t>>& blocks)
    : parameters_(described(model.named_parameters())), buffers_(described(model.named_buffers())) {
  const auto& chain = as<BlockChain>(model)->blocks();
  std::map<std::string, std::set<int>> holding;
  for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
    for (const auto index : blocks[rank]) {
      const auto& block = chain[index];
      for (const auto* names : {&block.parameters, &block.buffers}) {
        for (const auto& name : *names) holding[name].insert(static_cast<int>(rank));
      }
    }
  }
  for (const auto& [name, ranks] : holding) ranks_[name] = {ranks.begin(), ranks.end()};
  for (const auto* tensors : {&parameters_, &buffers_}) {
    for (const auto& tensor : *tensors) {
      if (!ranks_.contains(tensor.name)) throw Error("the model's " + tensor.name + " is in none of its blocks");
    }
  }
}

}  // namespace phalanx

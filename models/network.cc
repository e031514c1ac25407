#include "models/network.h"

#include <stdexcept>
#include <string>

#include "framework/base/error.h"
#include "models/batch_norm.h"

namespace phalanx {
namespace {

NamedTensors list_of(const torch::OrderedDict<std::string, at::Tensor>& tensors) {
  NamedTensors list;
  for (const auto& tensor : tensors) list.emplace_back(tensor.key(), tensor.value());
  return list;
}

bool is_of_torch(const torch::nn::Module& module) {
  return module.as<torch::nn::BatchNorm1dImpl>() != nullptr || module.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm3dImpl>() != nullptr;
}

}  // namespace

at::Tensor Network::forward(at::Tensor) {
  throw std::logic_error("a Network overrides forward() or outputs(), and " + name() + " overrides neither");
}

Tensors Network::outputs(const Tensors& inputs) {
  TORCH_CHECK(inputs.size() == 1, name(), " takes one tensor, but got ", inputs.size());
  return {forward(inputs[0])};
}

NamedTensors Network::named_parameters() const { return list_of(torch::nn::Module::named_parameters()); }

NamedTensors Network::named_buffers() const { return list_of(torch::nn::Module::named_buffers()); }

std::int64_t Network::synchronize_batch_norm(const std::shared_ptr<const BatchStatistics>& statistics) {
  std::int64_t layers = 0;
  for (const auto& module : named_modules()) {
    if (auto* norm = module.value()->as<BatchNorm2dImpl>()) {
      norm->synchronize(statistics);
      ++layers;
    } else if (is_of_torch(*module.value())) {
      throw ConfigError("train.sync_batch_norm: the model's " + module.key() +
                        " is LibTorch's batch norm, which sees only one rank; use the one in models/batch_norm.h");
    }
  }
  return layers;
}

}  // namespace phalanx

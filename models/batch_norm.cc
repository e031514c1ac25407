#include "models/batch_norm.h"

#include <ATen/ops/batch_norm.h>

#include "framework/base/error.h"
#include "framework/parallel/checkpointed.h"

namespace phalanx {

at::Tensor BatchNorm2dImpl::forward(const at::Tensor& input) {
  if (!is_training() || (!statistics_ && !recomputing())) return torch::nn::BatchNorm2dImpl::forward(input);
  TORCH_CHECK(options.affine() && options.track_running_stats() && options.momentum().has_value(),
              "batch norm over ranks, or computed again, is for layers with weight, statistics and a momentum");
  RunningStatistics running{.momentum = *options.momentum()};
  if (!recomputing()) {
    num_batches_tracked.add_(1);
    running.mean = running_mean;
    running.variance = running_var;
  }
  if (statistics_) return sync_batch_norm(input, weight, bias, running, options.eps(), *statistics_);
  return at::batch_norm(input, weight, bias, {}, {}, /*training=*/true, running.momentum, options.eps(), false);
}

namespace {

bool is_of_torch(const torch::nn::Module& module) {
  return module.as<torch::nn::BatchNorm1dImpl>() != nullptr || module.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm3dImpl>() != nullptr;
}

}  // namespace

std::int64_t synchronize_batch_norm(Model& model, const std::shared_ptr<const BatchStatistics>& statistics) {
  std::int64_t layers = 0;
  for (const auto& module : model.named_modules()) {
    if (auto* norm = module.value()->as<BatchNorm2dImpl>()) {
      norm->synchronize(statistics);
      ++layers;
    } else if (is_of_torch(*module.value())) {
      throw ConfigError("train.sync_batch_norm: the model's " + module.key() +
                        " is a batch norm of LibTorch, which sees one rank alone; take the one of models/batch_norm.h");
    }
  }
  return layers;
}

}  // namespace phalanx

#include "framework/parallel/flat_parameters.h"

#include <ATen/core/grad_mode.h>

#include <stdexcept>
#include <utility>

namespace phalanx {
namespace {

Bucket flatten(std::vector<at::Tensor> parameters, Communicator& memory) {
  const at::NoGradGuard no_grad;
  std::int64_t elements = 0;
  for (const auto& parameter : parameters) elements += parameter.numel();
  const auto options = parameters.front().options().requires_grad(false);
  Bucket bucket{memory.allocate({elements}, options), memory.allocate({elements}, options), std::move(parameters)};
  std::int64_t offset = 0;
  for (auto& parameter : bucket.parameters) {
    const auto view = [&](const at::Tensor& flat) {
      return flat.narrow(0, offset, parameter.numel()).view(parameter.sizes());
    };
    view(bucket.values).copy_(parameter);
    parameter.set_data(view(bucket.values));
    parameter.mutable_grad() = view(bucket.gradients);
    offset += parameter.numel();
  }
  return bucket;
}

}  // namespace

FlatParameters::FlatParameters(std::vector<at::Tensor> parameters, Communicator& memory, std::int64_t bucket_bytes) {
  std::vector<at::Tensor> run;
  std::int64_t bytes = 0;
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    if (parameter->scalar_type() != parameters.front().scalar_type()) {
      throw std::invalid_argument("a model's parameters must have one dtype");
    }
    run.push_back(*parameter);
    bytes += static_cast<std::int64_t>(parameter->nbytes());
    if (bytes < bucket_bytes) continue;
    buckets_.push_back(flatten(std::exchange(run, {}), memory));
    bytes = 0;
  }
  if (!run.empty()) buckets_.push_back(flatten(std::move(run), memory));
}

}  // namespace phalanx

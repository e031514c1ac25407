// SPDX-License-Identifier: Apache-2.0
#include "models/projection.h"

#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <initializer_list>

namespace phalanx {

Projection::Projection(const Options& options) : product_(options.layout, options.grain) {
  const bool out_first = options.layout == WeightLayout::kOutIn;
  const std::initializer_list<std::int64_t> sizes{out_first ? options.out : options.in,
                                                  out_first ? options.in : options.out};
  weight_ = register_parameter("weight", at::empty(sizes).normal_(0, options.deviation));
  if (options.bias) bias_ = register_parameter("bias", at::zeros({options.out}));
}

std::vector<at::Tensor> Projection::forward_all(const std::vector<std::shared_ptr<Projection>>& layers,
                                                const at::Tensor& x) {
  std::vector<at::Tensor> weights;
  if (!layers.front()->product_.sharded()) {
    for (const auto& layer : layers) weights.push_back(layer->forward(x));
    return weights;
  }
  std::vector<std::int64_t> sizes;
  for (const auto& layer : layers) {
    weights.push_back(layer->weight_);
    sizes.push_back(layer->weight_.size(0));
  }
  return layers.front()->product_.forward(x, at::concat(weights), /*bias=*/{}).split_with_sizes(sizes, -1);
}

}  // namespace phalanx

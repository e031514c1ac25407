// SPDX-License-Identifier: Apache-2.0
#include "engine/optim/layerwise.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <stdexcept>

#include "framework/base/error.h"

namespace phalanx {

void LayerwiseOptimizer::attach(std::vector<Slice> slices) {
  SliceOptimizer::attach(std::move(slices));
  attached_.clear();
  for (std::size_t i = 0; i < all_slices().size(); ++i) add_parameters(i);
  std::vector<const Parameter*> all;
  for (const auto& one : attached_) all.push_back(&one.parameter);
  attached(all);
}

void LayerwiseOptimizer::add_parameters(std::size_t slice) {
  const auto& segments = all_slices()[slice].segments;
  if (segments.empty() && all_slices()[slice].values.numel() > 0) {
    throw std::invalid_argument("optimizer " + name_ + ": slice " + std::to_string(slice) + " names no parameters");
  }
  for (const auto& segment : segments) {
    if (!segment.whole()) {
      throw ConfigError("optimizer " + name_ + " needs whole parameters, but a rank has only " +
                        std::to_string(segment.count) + " elements of " + segment.name +
                        "; choose a strategy that does not cut parameters, or another optimizer");
    }
    add_parameter(slice, segment);
  }
}

void LayerwiseOptimizer::add_parameter(std::size_t slice, const Segment& segment) {
  const auto view = [&](const at::Tensor& all) { return view_of(all.detach(), segment); };
  Parameter parameter{segment.name, view(all_slices()[slice].values), view(all_slices()[slice].gradients), {}};
  for (const auto& kind : state_by_kind()) parameter.state.push_back(view(kind[slice]));
  for (const auto& kind : own_kinds(parameter)) {
    const bool each =
        parameter.values.sizes().equals(kind.shape);  // one number per element, stored with the same strides
    parameter.own_state.push_back(each ? at::zeros_like(parameter.values)
                                       : at::zeros(kind.shape, parameter.values.options()));
  }
  attached_.push_back({std::move(parameter), slice, groups().of(segment.name)});
}

void LayerwiseOptimizer::update() {
  const at::NoGradGuard no_grad;
  count_update();
  std::vector<Due> all;
  for (const auto& [parameter, slice, group] : attached_) {
    all.push_back({parameter, rates_of(group), excluded().contains(parameter.name)});
  }
  update_parameters(all);
  for (const auto& slice : all_slices()) slice.gradients.zero_();
}

std::vector<StateTensor> LayerwiseOptimizer::state() {
  auto all = SliceOptimizer::state();
  for (const auto& attached : attached_) {
    const auto own = own_kinds(attached.parameter);
    for (std::size_t kind = 0; kind < own.size(); ++kind)
      all.push_back({own[kind].name, attached.slice, attached.parameter.own_state[kind], attached.parameter.name});
  }
  return all;
}

}  // namespace phalanx

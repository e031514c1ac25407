// SPDX-License-Identifier: Apache-2.0
#include "models/weights_layout.h"

#include <ATen/core/grad_mode.h>

#include "models/model.h"

namespace phalanx {
namespace {

template <class Change>
void change_all(Model& model, const Change& change) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) parameter.set_data(change(parameter));
  for (auto& buffer : model.buffers()) buffer.set_data(change(buffer));
}

}  // namespace

void weights_to_channels_last(Model& model) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
  }
}

void weights_to_double(Model& model) {
  change_all(model,
             [](const at::Tensor& tensor) { return tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor; });
}

void move_weights(Model& model, const c10::Device& device) {
  change_all(model, [&](const at::Tensor& tensor) { return tensor.to(device); });
}

}  // namespace phalanx

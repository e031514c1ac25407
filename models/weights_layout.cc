#include "models/weights_layout.h"

#include <ATen/core/grad_mode.h>

#include "models/model.h"

namespace phalanx {

void weights_to_channels_last(Model& model) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
  }
}

void weights_to_double(Model& model) {
  const at::NoGradGuard no_grad;
  const auto change = [](at::Tensor tensor) {
    if (tensor.is_floating_point()) tensor.set_data(tensor.to(at::kDouble));
  };
  for (auto& parameter : model.parameters()) change(parameter);
  for (auto& buffer : model.buffers()) change(buffer);
}

}  // namespace phalanx

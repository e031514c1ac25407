#include "models/channels_last.h"

#include <ATen/core/grad_mode.h>

#include "models/model.h"

namespace phalanx {

void weights_to_channels_last(Model& model) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
  }
}

}  // namespace phalanx

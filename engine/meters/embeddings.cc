// SPDX-License-Identifier: Apache-2.0
#include "engine/meters/embeddings.h"

#include <c10/util/StringUtil.h>

#include "framework/base/error.h"

namespace phalanx {

Embeddings embeddings_of(const Batch& batch, const Step::Result& result) {
  const at::Tensor output = result.whole_output(), target = batch.targets.at(0);
  const bool fits = target.scalar_type() == at::kLong && (target.dim() == 1 || target.dim() == 2) &&
                    output.dim() == target.dim() + 1 &&
                    target.sizes() == output.sizes().slice(0, static_cast<std::size_t>(target.dim()));
  if (!fits) {
    throw ConfigError(
        c10::str("a meter needs embeddings [n, members, width] and class indices [n, members] int64, but "
                 "the model's output is ",
                 output.sizes(), " and the target ", target.sizes(), " ", target.scalar_type(),
                 "; choose others in evaluate.meters and watch.meters"));
  }
  const auto width = output.size(-1), members = target.dim() == 1 ? 1 : target.size(1);
  return {.vectors = output.narrow(0, 0, batch.valid)
                         .to(at::kCPU, at::kDouble)
                         .reshape({batch.valid, members, width})
                         .contiguous(),
          .classes = target.narrow(0, 0, batch.valid).to(at::kCPU).reshape({batch.valid, members}).contiguous()};
}

}  // namespace phalanx

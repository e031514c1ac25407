// SPDX-License-Identifier: Apache-2.0
#include "models/expert_parallel.h"

namespace phalanx {

std::string refusal_of_parts(const std::string& model, const std::string& options) {
  return "computes a batch in parts, but " + options + " of model " + model +
         " depends on where all tokens of the batch go, which is not yet known when its first part is computed; set "
         "model.count_over: sequence, which counts each sequence separately";
}

}  // namespace phalanx
